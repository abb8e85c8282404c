"""Waiting until the whole installation is good, and saying what keeps it from being so."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from .api_client import Api, ApiError
from .part import Part

READY_SECONDS = 120.0
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.1, 1.0
SAY_SECONDS = 5.0
TAIL_LINES = 20
STARTED_HERE = "worker"  # how to start one is no advice to whoever is just starting it
REFUSES_KEY = "the box provider refuses BOX_API_KEY"  # as /readyz says it: waiting helps nothing


class NotReady(Exception):
    """What is missing, after all the time there was."""


def wait_until_ready(
    api: Api, say: Callable[[str], None], stopping: Callable[[], bool], seconds: float = READY_SECONDS
) -> None:
    """Return when /readyz is good, or when `stopping`. Says every few seconds what it waits for.

    Raises NotReady when the time is over, and at once for what does not pass.
    """
    began = said = time.monotonic()
    pause = FIRST_LOOK_SECONDS
    while not stopping():
        missing = what_is_missing(api)
        if not missing:
            return
        if REFUSES_KEY in missing:
            raise NotReady(REFUSES_KEY)
        now = time.monotonic()
        if now - began > seconds:
            raise NotReady(f"not ready after {seconds:.0f} s: {missing}")
        if now - said > SAY_SECONDS:
            said = now
            say(f"waiting for {missing}")
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_LOOK_SECONDS)


def what_is_missing(api: Api) -> str:
    """Empty if all is good, the worker too; else what /readyz names, with what it says of it, or the web server itself."""
    try:
        return _named(api.get("/readyz"))
    except ApiError as error:
        return _named(error.body) or ("the web server" if error.status == 0 else error.detail)


def _named(body: dict[str, Any]) -> str:
    checks = body.get("checks", {})
    named = [f"{name} ({told})" for name, told in checks.items() if told != "ok" and name != STARTED_HERE]
    return ", ".join(named + ([STARTED_HERE] if checks.get(STARTED_HERE, "ok") != "ok" else []))


def culprit(parts: Sequence[Part], missing: str) -> Part | None:
    """The part that most likely keeps the others from being good: one that ended, else the one that is named as missing."""
    troubled = [part for part in parts if part.starts > 1 or not part.is_running]
    named = [part for part in parts if part.name in missing]
    return max(troubled or named, key=lambda part: part.starts, default=None)


def last_lines(part: Part) -> list[str]:
    return list(part.log.recent)[-TAIL_LINES:]
