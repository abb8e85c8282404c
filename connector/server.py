"""The server's side of the channel, as requests. Nothing is retried here: who calls knows what a failure means."""

from __future__ import annotations

import json
import ssl
from typing import Any
from urllib.parse import urlsplit

import httpx

from connector import VERSION
from connector.errors import ConnectorError, NotLetIn, Refused, Superseded, Unreachable
from connector.journal import Told

PROTOCOL = 1
POLL_SECONDS = 25
LONGEST_PAUSE_SECONDS = 300.0
"""A server that says when it wants to be asked again is not obeyed for longer: it may be well before that."""
_NOT_LET_IN = {
    "machine_revoked": "this computer was revoked by its owner: pair it again",
    "machine_expired": "the key of this computer has expired: pair it again",
    "machine_not_found": "the server does not know this computer: pair it again",
}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def checked_address(server: str) -> str:
    """The server's address without a final slash. Raises ConnectorError for one that would send the key in the clear."""
    parts = urlsplit(server)
    try:
        _ = parts.port
    except ValueError as error:
        raise ConnectorError(f"the server's address is none: {error}") from None
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.query
        or parts.fragment
        or parts.username
    ):
        raise ConnectorError("the server is an address such as https://boxes.example.org")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ConnectorError("the server must be reached over https: the key would be sent in the clear")
    return server.rstrip("/")


class Server:
    """One server, asked with one token."""

    def __init__(self, address: str, token: str = "") -> None:
        headers = {"User-Agent": f"openagents-connector/{VERSION}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.AsyncClient(
            base_url=address, headers=headers, timeout=httpx.Timeout(20, connect=10), follow_redirects=False,
            trust_env=urlsplit(address).hostname not in _LOOPBACK, verify=ssl.create_default_context(),
        )  # fmt: skip

    async def close(self) -> None:
        await self._http.aclose()

    async def start_pairing(self, description: dict[str, Any]) -> dict[str, Any]:
        return await self._ask("POST", "/api/v1/pairings", description)

    async def look_at_pairing(self, pairing_id: str, secret: str) -> dict[str, Any]:
        return await self._ask("GET", f"/api/v1/pairings/{pairing_id}", headers={"X-Pairing-Secret": secret})

    async def connect(self, hello: dict[str, Any]) -> dict[str, Any]:
        return await self._ask(
            "POST", "/machine/v1/connect", {"protocol": PROTOCOL, "agent_version": VERSION, **hello}
        )

    async def poll(self, epoch: int, heard: int, seconds: int = POLL_SECONDS) -> list[dict[str, Any]]:
        query = f"epoch={epoch}&heard={heard}&wait={seconds}"
        answer = await self._ask("GET", f"/machine/v1/poll?{query}", seconds=seconds + 20)
        frames = answer.get("frames")
        if not isinstance(frames, list):
            raise Unreachable("an answer that is not understood")
        return frames

    async def tell(self, epoch: int, frames: list[Told]) -> dict[str, Any]:
        told = [{"seq": frame.seq, "kind": frame.kind, "body": frame.body} for frame in frames]
        return await self._ask("POST", "/machine/v1/frames", {"epoch": epoch, "frames": told})

    async def disconnect(self, epoch: int) -> None:
        await self._ask("POST", "/machine/v1/disconnect", {"epoch": epoch}, seconds=3)

    async def unpair(self) -> None:
        await self._ask("POST", "/machine/v1/unpair", {})

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds: float = 20,
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """The answer. Raises Unreachable for what may be tried again, NotLetIn, Superseded, and Refused."""
        content = None if body is None else json.dumps(body).encode()
        headers = {**(headers or {}), **({"Content-Type": "application/json"} if content else {})}
        try:
            answer = await self._http.request(
                method, path, content=content, headers=headers, timeout=httpx.Timeout(seconds, connect=10)
            )
        except httpx.HTTPError as error:
            raise Unreachable(type(error).__name__) from None
        return _understood(answer)


def _understood(answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code == 204:
        return {}
    body = _object(answer)
    if answer.status_code < 300 and body is not None:
        return body
    code, detail = _refusal(body)
    if answer.status_code == 401 and code in _NOT_LET_IN:
        raise NotLetIn(_NOT_LET_IN[code])
    if code == "channel_superseded":
        raise Superseded("another connector has connected with the key of this computer; only one may run")
    if answer.status_code == 429 or answer.status_code >= 500 or answer.status_code < 400 or not code:
        raise Unreachable(code or f"status {answer.status_code}", _retry_after(answer))
    raise Refused(answer.status_code, code, detail)


def _object(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        body = answer.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _refusal(body: dict[str, Any] | None) -> tuple[str, str]:
    error = (body or {}).get("error")
    if not isinstance(error, dict):
        return "", ""
    return str(error.get("code") or ""), str(error.get("detail") or "")


def _retry_after(answer: httpx.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), LONGEST_PAUSE_SECONDS) if text.isdecimal() and len(text) < 10 else None
