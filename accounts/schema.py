"""What the OpenAPI description says beyond the serializers: the scope of each call."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from accounts.permissions import scope_needed


class ScopedAutoSchema(AutoSchema):
    """Names the token scope that each call needs, and whether it is for staff."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is not None:
            staff = " Staff only." if getattr(self.view, "staff_only", False) else ""
            scope = f"Scope: `{scope_needed(self.view, self.method)}`.{staff}"
            operation["description"] = f"{operation.get('description', '')}\n\n{scope}".strip()
        return operation


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.BearerTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API token, `oa_pat_...`."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.SignedInAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
