"""What is held back stays small, and the work grows with the text alone."""

from __future__ import annotations

import json
import sys
import time

import pytest

from base.redaction import Redactor
from tests.base.withheld import POLICY


def test_a_secret_that_goes_on_for_ever_is_withheld_without_being_kept() -> None:
    redactor = Redactor()
    texts = [piece.text for _ in range(50) for piece in redactor.feed(b"sk-" + b"a" * 10_000)]

    assert "".join(texts) == "[REDACTED]"
    assert len(redactor.state.held) == 0


ENDLESS = [
    "sk-",
    "a",
    "http://a",
    "a\r",
    "\x1b[",
    "\x1b",
    "-----BEGIN ",
    "bearer",
    "basic a ",
    "password",
    "?token",
    "\0",
    "\\",
    "\\u001",
    "%3D",
    "[1;",
    "[1m",
]


@pytest.mark.parametrize("unit", [*ENDLESS, "https://" + "a" * 6_000, "www", "-----BEGIN PRIVATE KEY-----"])
def test_what_is_held_back_stays_small_whatever_comes(unit: str) -> None:
    redactor = Redactor(POLICY)
    largest = 0
    for _ in range(12):
        redactor.feed((unit * (4_000 // len(unit) + 1)).encode())
        largest = max(largest, len(redactor.state.held))

    assert largest < 10_000
    assert len(json.dumps(redactor.state.to_json())) < 20_000


@pytest.mark.parametrize("unit", ENDLESS)
def test_the_work_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    """Counted in calls of Python and C functions, which a quadratic search multiplies."""
    short, long = (_calls(unit, size) for size in (2_000, 16_000))

    assert long < short * 16


def _calls(unit: str, size: int) -> int:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    data = (unit * (size // len(unit))).encode()
    redactor = Redactor(POLICY)
    previous = sys.getprofile()
    sys.setprofile(count)
    try:
        redactor.feed(data)
        redactor.flush()
    finally:
        sys.setprofile(previous)
    return calls


@pytest.mark.parametrize("unit", [*ENDLESS, "s\r\r\r\rk", "https://a:", "password=", "x" * 30 + "\r"])
def test_the_time_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    """Eight times the text takes about eight times as long; a quadratic search would take 64 times."""
    short, long = (min(_seconds(unit, size) for _ in range(3)) for size in (20_000, 160_000))

    assert long < short * 32


def _seconds(unit: str, size: int) -> float:
    data = (unit * (size // len(unit))).encode()
    redactor, started = Redactor(POLICY), time.process_time()
    redactor.feed(data)
    redactor.flush()
    return time.process_time() - started
