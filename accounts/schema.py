"""What the OpenAPI description says beyond the serializers: the scope of each call."""

from __future__ import annotations

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from accounts.permissions import scope_needed


class ScopedAutoSchema(AutoSchema):
    """Names the token scope that each call needs, and whether it is for staff."""

    def get_description(self) -> str:
        description = super().get_description() or ""
        staff = " Staff only." if getattr(self.view, "staff_only", False) else ""
        return f"{description}\n\nScope: `{scope_needed(self.view, self.method)}`.{staff}".strip()


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
