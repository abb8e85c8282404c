"""One request and its answer, as the handlers see them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ..dialects import Dialect
from ..errors import ApiError, bad_request

SMALL_BODY_BYTES = 1 << 20


@dataclass(frozen=True)
class Answer:
    """A success: the exact status, the response type in the words of the first dialect, the fields."""

    status: int
    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class JsonResponse(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def success(answer: Answer, dialect: Dialect) -> Response:
    envelope = {"ok": True, "type": dialect.kind(answer.kind), **answer.fields}
    return JsonResponse(envelope, answer.status)


def failure(error: ApiError, dialect: Dialect, request_id: str) -> Response:
    """The complete error envelope. Never more than the error's own words."""
    code = dialect.code(error.code)
    inner: dict[str, Any] = {"code": code, "message": error.message, "status": error.status}
    if error.details is not None:
        inner["details"] = error.details
    envelope = {
        "ok": False,
        "type": dialect.kind("box.error"),
        "status": error.status,
        "code": code,
        "message": error.message,
        "requestId": request_id,
        "error": inner,
    }
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JsonResponse(envelope, error.status, headers)


async def json_body(request: Request, *, maximum: int = SMALL_BODY_BYTES) -> dict[str, Any]:
    """The request's JSON object; nothing sent is an empty one. Raises ApiError 400 `invalid_json`, 413."""
    raw = await _read(request, maximum)
    if len(raw) > SMALL_BODY_BYTES:  # long enough to hold up the other requests
        return await asyncio.to_thread(_parsed, raw)
    return _parsed(raw)


def _parsed(raw: bytes) -> dict[str, Any]:
    if not raw.strip():
        return {}
    try:
        text = raw.decode("utf-8")
        body = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is not text
    except (ValueError, RecursionError):
        raise bad_request("invalid_json", "The body is not valid JSON in UTF-8.") from None
    if not isinstance(body, dict):
        raise bad_request("invalid_json", "The body must be a JSON object.")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


async def _read(request: Request, maximum: int) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > maximum:
        raise _too_large(maximum)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > maximum:
                raise _too_large(maximum)
            parts.append(part)
    except ClientDisconnect:
        raise bad_request("invalid_json", "The body did not arrive whole.") from None
    return b"".join(parts)


def _too_large(maximum: int) -> ApiError:
    return ApiError(413, "body_too_large", f"The body may have at most {maximum} bytes.")


def whole_number(request: Request, name: str, default: int, *, low: int, high: int) -> int:
    """A number from the query. Raises ApiError 400 `invalid_<name>`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
        raise bad_request(f"invalid_{_snake(name)}", f"{name} must be a whole number from {low} to {high}.")
    return int(text)


def choice(request: Request, name: str, choices: tuple[str, ...]) -> str:
    """One of a few words from the query; the first is the default."""
    value = request.query_params.get(name, choices[0])
    if value not in choices:
        raise bad_request(f"invalid_{name}", f"{name} must be one of {', '.join(choices)}.")
    return value


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
