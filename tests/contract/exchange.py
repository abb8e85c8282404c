"""One request with its answer, as it is recorded for the description and the guide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import requests

API = "/api/v1"


@dataclass
class Exchange:
    """`operation` is the verb and the path as the description has it: `POST /api/v1/boxes/{ref}/stop`."""

    operation: str
    path: str
    body: Any
    status: int
    answer: Any
    headers: dict[str, str] = field(default_factory=dict)


class Caller:
    """Asks as one of the installation's users, and keeps the first exchange of every operation."""

    def __init__(self, url: str, tokens: dict[str, str]) -> None:
        self.url = url
        self.exchanges: dict[str, Exchange] = {}
        self._tokens = tokens
        self._session = requests.Session()
        self._session.trust_env = False

    def __call__(
        self, method: str, template: str, body: Any = None, *, by: str | None = "owner", query: str = "",
        headers: dict[str, str] | None = None, **places: Any,
    ) -> Any:  # fmt: skip
        """The answer, which is a success. `places` fill the path's template."""
        path = API + template.format(**places) + query
        own = {"Authorization": f"Bearer {self._tokens[by]}"} if by else {}
        answer = self._session.request(
            method, self.url + path, json=body, headers=own | (headers or {}), timeout=60
        )
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        is_json = answer.headers.get("Content-Type", "") == "application/json"
        told = answer.json() if is_json else answer.text
        exchange = Exchange(f"{method} {API}{template}", path, body, answer.status_code, told, headers or {})
        self.exchanges.setdefault(exchange.operation, exchange)
        return told

    def until(self, condition: str, method: str, template: str, **options: Any) -> Any:
        """Ask until the answer's field named by `condition` is true."""
        for _ in range(60):
            found = self(method, template, **options)
            if found[condition]:
                return found
        raise AssertionError(f"{template} never had {condition}: {found}")
