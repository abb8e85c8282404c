"""GitHub's OAuth endpoints over HTTP, as far as a sign-in needs them: one code for one token for one person."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

PERSON = {
    "id": 7000,
    "login": "octo",
    "avatar_url": "https://avatars.invalid/u/7000",
    "email": "octo@mail.invalid",
}


class FakeGitHub:
    """`person` is who says yes. `url` is the address; what was asked of it is in `asked`."""

    client_id, client_secret = "oauth-app", "oauth-app-secret"

    def __init__(self) -> None:
        self.person: dict[str, Any] = dict(PERSON)
        self.asked: list[str] = []
        self.codes: dict[str, str] = {}
        self.tokens: set[str] = set()
        self.broken = False
        self.url = ""

    def authorize(self, query: dict[str, str]) -> tuple[int, str]:
        """The person says yes: back to the site with a code."""
        code = secrets.token_hex(8)
        self.codes[code] = query.get("code_challenge", "")
        return 302, f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> tuple[int, Any]:
        """A code is good once, for the app that asked, with the verifier of its challenge."""
        challenge = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proved = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge
        app = (form.get("client_id"), form.get("client_secret"))
        if not proved or app != (self.client_id, self.client_secret):
            return 200, {"error": "bad_verification_code"}
        token = secrets.token_hex(8)
        self.tokens.add(token)
        return 200, {"access_token": token, "token_type": "bearer", "scope": ""}

    def user(self, authorization: str) -> tuple[int, Any]:
        known = authorization.removeprefix("token ") in self.tokens
        if self.broken or not known:
            return 500 if self.broken else 401, {"message": "no"}
        return 200, self.person


def _handler(github: FakeGitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            github.asked.append(address.path)
            if address.path == "/login/oauth/authorize":
                status, where = github.authorize(_flat(address.query))
                self._answer(status, b"", {"Location": where})
            else:
                self._json(*github.user(self.headers.get("Authorization", "")))

        def do_POST(self) -> None:
            github.asked.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            self._json(*github.token(_flat(body)))

        def _json(self, status: int, body: Any) -> None:
            self._answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Nothing on the test's output."""

    return Handler


def _flat(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


@contextmanager
def fake_github() -> Iterator[FakeGitHub]:
    """One that runs until the block ends."""
    github = FakeGitHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(github))
    github.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
