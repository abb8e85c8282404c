"""Every error answer has one shape: `{"error": {"code", "detail", "fields"}}`. Codes are stable, details are for people.

An app registers which HTTP status each of its codes has, once, with `register_statuses`. What nobody expected is
answered 500 `internal_error`, logged, and told to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from base.errors import CodedError
from base.text import storable

log = structlog.get_logger(__name__)
LONGEST_TOLD = 500  # characters of a sentence, or of a name of a field
AGAIN_SECONDS = 2  # a database that restarts, or whose connections are all in use, is back soon
_statuses: dict[str, int] = {
    "invalid_api_token": 401,
    "insufficient_scope": 403,
    "staff_only": 403,
    "invalid_cursor": 422,
    "invalid_token_request": 422,
    "conversation_not_found": 404,
    "empty_message": 422,
    "message_too_long": 422,
    "idempotency_conflict": 409,
    "idempotency_in_progress": 409,
    "invalid_idempotency_key": 422,
    "rate_limited": 429,
    "object_not_found": 404,
    "invalid_object": 422,
    "invalid_json": 400,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "internal_error": 500,
    "temporarily_unavailable": 503,
}
_public_codes: dict[str, str] = {}
_details: dict[str, str] = {
    "invalid_request": "the request is not valid",
    "not_found": "there is nothing at this address",
    "body_too_large": "the body is too large",
    "internal_error": "something went wrong; the request id names the log lines",
    "temporarily_unavailable": "the database does not answer right now; ask again",
    "rate_limited": "too many requests of this kind in one minute; `Retry-After` says when to come again",
}
_DRF_CODES = {
    exceptions.ParseError: ("invalid_json", "the body is not valid JSON"),
    exceptions.MethodNotAllowed: ("method_not_allowed", "this address does not take that method"),
    exceptions.UnsupportedMediaType: ("unsupported_media_type", "send application/json"),
    exceptions.NotAcceptable: ("not_acceptable", "only application/json is served"),
    exceptions.NotAuthenticated: ("invalid_api_token", "a token or a signed-in session is needed"),
    exceptions.AuthenticationFailed: ("invalid_api_token", "a token or a signed-in session is needed"),
    exceptions.PermissionDenied: ("forbidden", "this is not allowed, or the CSRF token is missing"),
    exceptions.Throttled: ("rate_limited", "too many requests"),
}
_details.update({code: detail for code, detail in _DRF_CODES.values() if code not in _details})


def register_statuses(
    statuses: Mapping[str, int],
    public_codes: Mapping[str, str] | None = None,
    details: Mapping[str, str] | None = None,
) -> None:
    """Say which HTTP status the codes of an app have, and which code the API shows where it is not the error's own.

    A code may be registered again only with the same status. `details` are the sentences of codes that have no error class
    of their own.
    """
    for code, status in statuses.items():
        if _statuses.setdefault(str(code), status) != status:
            raise ValueError(f"{code} is {_statuses[code]} already")
    _public_codes.update({str(code): str(shown) for code, shown in (public_codes or {}).items()})
    for code, shown in (public_codes or {}).items():
        _statuses.setdefault(str(shown), _statuses[str(code)])
    for code, detail in (details or {}).items():
        _details.setdefault(public_code(str(code)), detail)


def status_of(code: str) -> int:
    """The HTTP status of a code; 400 for one that nobody registered."""
    return _statuses.get(code, 400)


def is_registered(code: str) -> bool:
    """Whether a code, or the one that the API shows for it, has an HTTP status of its own."""
    return public_code(code) in _statuses


def public_code(code: str) -> str:
    """The code that the API shows for an error's own."""
    return _public_codes.get(str(code), str(code))


def registered_detail(code: str) -> str | None:
    """The sentence that was registered for a public code."""
    return _details.get(code)


def body(code: str, detail: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer. What repeats a value of the caller is cut, and holds nothing that JSON's UTF-8 cannot."""
    error: dict[str, Any] = {"code": code, "detail": _spoken(detail)}
    if fields:
        error["fields"] = _spoken(fields)
    return {"error": error}


def _spoken(told: Any) -> Any:
    if isinstance(told, Mapping):
        return {_spoken(str(name)): _spoken(value) for name, value in told.items()}
    if isinstance(told, list | tuple):
        return [_spoken(each) for each in told]
    if told is None or isinstance(told, int | float):
        return told
    text = storable(str(told))
    return text if len(text) <= LONGEST_TOLD else text[: LONGEST_TOLD - 1] + "…"


def answer(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler. Returns None for what nobody expected, which Django turns into a 500."""
    set_rollback()
    if isinstance(error, CodedError):
        return _coded(error, context)
    if isinstance(error, Http404 | exceptions.NotFound):
        return Response(body("not_found", _details["not_found"]), status=404)
    if isinstance(error, RequestDataTooBig):
        return Response(body("body_too_large", _details["body_too_large"]), status=413)
    if isinstance(error, OperationalError | InterfaceError):
        return _unavailable(error, context)
    if isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, exceptions.ValidationError):
        return Response(_invalid(error), status=422)
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    return None


def _coded(error: CodedError, context: dict[str, Any]) -> Response:
    shown = public_code(error.code)
    response = Response(body(shown, error.detail, error.fields), status=status_of(error.code))
    retry_after = getattr(error, "retry_after_seconds", None)
    if response.status_code == 429:
        response["Retry-After"] = str(max(1, int(retry_after or 1)))
    if response.status_code == 401:
        response["WWW-Authenticate"] = "Bearer"
    log.info("request_refused", code=error.code, view=type(context.get("view")).__name__)
    return response


def _unavailable(error: Exception, context: dict[str, Any]) -> Response:
    """The database is away, or has no connection left: whoever asks again under the same key loses nothing."""
    log.error("database_unavailable", view=type(context.get("view")).__name__, exc_info=error)
    response = Response(body("temporarily_unavailable", _details["temporarily_unavailable"]), status=503)
    response["Retry-After"] = str(AGAIN_SECONDS)
    return response


def _invalid(error: exceptions.ValidationError) -> dict[str, Any]:
    """A code that a validator named exactly wins over the general one."""
    details = error.detail if isinstance(error.detail, dict) else {"non_field_errors": error.detail}
    codes = error.get_codes()
    exact = _exact_code(codes)
    return body(exact or "invalid_request", _details["invalid_request"], details)


def _exact_code(codes: Any) -> str | None:
    if isinstance(codes, dict):
        codes = list(codes.values())
    if isinstance(codes, list):
        return next((found for code in codes if (found := _exact_code(code))), None)
    return codes if isinstance(codes, str) and codes in _statuses else None


def _of_framework(error: exceptions.APIException) -> Response:
    code, detail = next(
        (named for kind, named in _DRF_CODES.items() if isinstance(error, kind)),
        ("request_failed", "the request failed"),
    )
    response = Response(body(code, detail), status=error.status_code)
    if code == "invalid_api_token":
        response.status_code = 401
        response["WWW-Authenticate"] = "Bearer"
    return response


@csrf_exempt  # what is not there is not there, whoever asks
def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """404 for an address that is not there, in the same shape."""
    return JsonResponse(body("not_found", _details["not_found"]), status=404)


def server_error(request: HttpRequest) -> JsonResponse:
    """500 in the same shape, without a word of what happened; that is in the log, under the request id."""
    return JsonResponse(body("internal_error", _details["internal_error"]), status=500)
