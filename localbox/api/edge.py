"""What happens to every request before and after its handler: id, key, delay, log line, and a clean answer to
whatever goes wrong."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import ids, log
from ..dialects import Dialect, of_path
from ..errors import ApiError, not_supported
from .calls import failure

HEALTH_PATH = "/healthz"


class Edge:
    """ASGI wrapper around the routes. `/healthz` alone needs no key."""

    def __init__(self, app: ASGIApp, *, key: str, latency_ms: int = 0) -> None:
        self._app = app
        self._key_digest = _digest(key.encode())
        self._latency_seconds = latency_ms / 1000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        exchange = _Exchange(scope, send)
        try:
            if self._latency_seconds:
                await asyncio.sleep(self._latency_seconds)
            if scope["path"] != HEALTH_PATH:
                self._check_key(scope)
            await self._app(scope, receive, exchange.send)
        except ApiError as error:
            await exchange.fail(error, receive)
        except HTTPException:
            await exchange.fail(not_supported(scope["method"], scope["path"][:200]), receive)
        except ClientDisconnect:
            pass
        except Exception:
            log.exception("request_failed", request=exchange.request_id, path=scope["path"][:200])
            text = "Something unexpected happened; the server's log has it under this request id."
            await exchange.fail(ApiError(500, "internal_error", text), receive)
        exchange.report()
        return None

    def _check_key(self, scope: Scope) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        scheme, _, token = given.partition(b" ")
        right = hmac.compare_digest(_digest(token.strip()), self._key_digest)
        if scheme.lower() != b"bearer" or not right:
            raise ApiError(401, "unauthorized", "Send this server's key as Authorization: Bearer <key>.")


def _digest(token: bytes) -> bytes:
    """Equal lengths for the comparison, whatever was sent."""
    return hashlib.sha256(token).digest()


class _Exchange:
    """One request under way: its id, what has been sent of the answer, and how long it took."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.request_id = ids.request_id()
        self._scope = scope
        self._send = send
        self._begun = time.monotonic()
        self._status = 0
        scope["app"] = self  # with it, the router raises for a wrong method instead of answering by itself

    @property
    def _dialect(self) -> Dialect:
        return of_path(self._scope["path"])

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", self.request_id.encode())]
        await self._send(message)

    async def fail(self, error: ApiError, receive: Receive) -> None:
        if self._status:  # the answer has begun; all that is left is to break it off
            raise error
        await failure(error, self._dialect, self.request_id)(self._scope, receive, self.send)

    def report(self) -> None:
        """A line per request that changed or refused something; plain reads only at debug."""
        quiet = self._scope["method"] in ("GET", "HEAD") and self._status < 400
        if not log.enabled_for(logging.DEBUG if quiet else logging.INFO):
            return
        (log.debug if quiet else log.info)(
            "request",
            request=self.request_id,
            method=self._scope["method"],
            path=self._scope["path"][:200],
            status=self._status,
            milliseconds=round((time.monotonic() - self._begun) * 1000, 1),
        )
