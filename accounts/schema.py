"""What the OpenAPI description says beyond the serializers: who may call, and every error that a call may answer with."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.permissions import SAFE_METHODS, AllowAny

from accounts.permissions import scope_needed
from base.api.parameters import ALL
from base.api.schema import CODES, ErrorAnswer, described_errors, shown_codes
from base.api.serializers import StrictSerializer

EVERY_CALL = ("invalid_request", "not_acceptable", "internal_error", "temporarily_unavailable")
CALLS_BY_TOKEN = ("invalid_api_token", "insufficient_scope")
CALLS_WITH_A_BODY = ("invalid_json", "unsupported_media_type", "body_too_large")
LISTS = ("invalid_cursor",)
EVERYBODYS = OpenApiParameter(
    ALL, bool, description="Staff: whoever it belongs to. Others have what is theirs, whatever they ask for."
)


class ScopedAutoSchema(AutoSchema):
    """Names the token scope that each call needs, whether it is for staff, and every code that it may answer with.

    The codes are those of every call of its kind, those that the view lists in `lookup_errors` since each of its calls begins
    with a look-up, and those that `extend_schema(extensions=refusals(...))` names.
    """

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        operation["description"] = f"{operation.get('description', '')}\n\n{self._who()}".strip()
        codes = shown_codes([*self._codes_of_its_kind(operation), *operation.get(CODES, ())])
        answer = self.resolve_serializer(ErrorAnswer, "response").ref
        operation[CODES] = codes
        operation["responses"] |= described_errors(codes, answer)
        return operation

    def get_override_parameters(self) -> list[Any]:
        """Those of the view, and `all` where staff may ask for what belongs to others."""
        found = super().get_override_parameters()
        return [*found, EVERYBODYS] if self._takes_all() else found

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Which ways of signing in there are; a token needs the scope that is named with it."""
        found: list[dict[str, list[str]]] = super().get_auth()
        return [{name: [self._scope()] if name == "token" else []} for each in found for name in each] or [{}]

    def _map_basic_serializer(self, serializer: Any, direction: str) -> dict[str, Any]:
        """A body that refuses fields that it does not know says so."""
        found: dict[str, Any] = super()._map_basic_serializer(  # type: ignore[no-untyped-call]
            serializer, direction
        )
        if direction == "request" and isinstance(serializer, StrictSerializer):
            found["additionalProperties"] = False
        return found

    def _who(self) -> str:
        if self._is_for_everybody():
            return "Without a token."
        staff = " Staff only." if getattr(self.view, "staff_only", False) else ""
        return f"Scope: `{self._scope()}`.{staff}"

    def _scope(self) -> str:
        return str(scope_needed(self.view, self.method))

    def _takes_all(self) -> bool:
        own = self._is_for_everybody() or getattr(self.view, "staff_only", False)
        return not own and getattr(self.view, "takes_all", True)

    def _is_for_everybody(self) -> bool:
        return AllowAny in self.view.permission_classes

    def _codes_of_its_kind(self, operation: dict[str, Any]) -> list[str]:
        codes = [*EVERY_CALL, *getattr(self.view, "lookup_errors", ())]
        codes += () if self._is_for_everybody() else CALLS_BY_TOKEN
        codes += ("staff_only",) if getattr(self.view, "staff_only", False) else ()
        codes += () if self.method in SAFE_METHODS or self._is_for_everybody() else ("forbidden",)
        codes += CALLS_WITH_A_BODY if "requestBody" in operation else ()
        places = [(each["in"], each["name"]) for each in operation.get("parameters", ())]
        codes += LISTS if ("query", "cursor") in places else ()
        codes += ("not_found",) if {where for where, _ in places} & {"path"} else ()
        return codes


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.BearerTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, `oa_pat_...`. The scope that a call needs stands beside it in `security`.",
        }


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.SignedInAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The session of a signed-in user, who has every scope. What changes something needs the CSRF token.",
        }
