"""The public HTTP API, called as any user's program would call it: JSON over HTTP with a bearer token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from typing import Any

WAIT_SECONDS = 20  # how long a request lets the server wait for news
SOCKET_SECONDS = 40.0
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the site is on this machine


class ApiError(Exception):
    """The API refused, or could not be reached (status 0). `code` is the API's own; `body` is all it answered."""

    def __init__(self, status: int, code: str, detail: str, body: dict[str, Any] | None = None) -> None:
        self.status, self.code, self.detail, self.body = status, code, detail, body or {}
        super().__init__(detail)


class Api:
    """The site at `url`, with the token of one user."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url
        self._token = token

    def get(self, path: str) -> dict[str, Any]:
        return self._send("GET", path)

    def post(self, path: str, body: dict[str, Any] | None = None, key: str | None = None) -> dict[str, Any]:
        """`key` makes it safe to send the request again."""
        return self._send("POST", path, body or {}, key or str(uuid.uuid4()))

    def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None, key: str = ""
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310 - http by construction
        try:
            with _direct.open(request, timeout=SOCKET_SECONDS) as answer:
                return _object(answer.read())
        except urllib.error.HTTPError as error:
            raise _refusal(error.code, _object(error.read())) from None
        except (OSError, ValueError) as error:
            raise ApiError(0, "unreachable", f"the site did not answer ({error})") from None


def _refusal(status: int, body: dict[str, Any]) -> ApiError:
    error = body.get("error")
    if not isinstance(error, dict):
        return ApiError(status, f"http_{status}", f"the site answered {status}", body)
    return ApiError(status, str(error.get("code", f"http_{status}")), str(error.get("detail", "")), body)


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
