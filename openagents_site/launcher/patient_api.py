"""Requests that are sent again, under the same key, while the site is not there: its processes may be killed at any time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from .api_client import Api, ApiError

AGAIN_SECONDS = 60.0  # for how long a site that does not answer is asked again
PAUSE_SECONDS = 0.5


class PatientApi:
    """The API for somebody who waits; `stopping` tells that nobody does any more. Raises ApiError."""

    def __init__(self, api: Api, stopping: Callable[[], bool]) -> None:
        self._api = api
        self.stopping = stopping

    def get(self, path: str) -> dict[str, Any]:
        return self._persistently(lambda: self._api.get(path))

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Done once, however often it is sent."""
        key = str(uuid.uuid4())
        return self._persistently(lambda: self._api.post(path, body, key))

    def until(self, seconds: float) -> Iterator[None]:
        """Twice a second for so long, as long as anybody waits for it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.stopping():
            yield
            time.sleep(PAUSE_SECONDS)

    def _persistently(self, request: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        deadline = time.monotonic() + AGAIN_SECONDS
        while True:
            try:
                return request()
            except ApiError as error:
                if not _may_pass(error) or time.monotonic() > deadline or self.stopping():
                    raise
            time.sleep(PAUSE_SECONDS)


def _may_pass(error: ApiError) -> bool:
    return error.status in {0, 500, 502, 503, 504} or error.code == "idempotency_in_progress"
