"""Reading one box, its times and its cost, whatever is said of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxes.client import parse_box, parse_cost_microusd, parse_usage, unwrapped
from boxes.client.bodies import json_object
from boxes.states import BoxState, SetupStatus
from tests.boxes.client.properties import JSON, unhurried

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def box(**fields: Any) -> Any:
    return parse_box({"id": "bx_1", **fields}, "bx_1")


@pytest.mark.parametrize("state", BoxState.values)
def test_a_state_of_ours_is_kept(state: str) -> None:
    assert box(state=state).state == box(status=state).state == state


@pytest.mark.parametrize(
    ("raw", "state", "terminal", "known"),
    [
        ("stopped", "archived", True, True),
        ("terminated", "archived", True, True),
        ("deleted", "archived", True, True),
        ("archived", "archived", True, True),
        ("error", "error", True, True),
        ("cancelled", "error", True, True),
        ("stopping", "archiving", False, True),
        ("archiving", "archiving", False, True),
        ("securing", "provisioning", False, True),
        ("hibernating", "provisioning", False, False),
        ("", "provisioning", False, False),
        (None, "provisioning", False, False),
        (7, "provisioning", False, False),
        ({"is": "ready"}, "provisioning", False, False),
    ],
)
def test_another_state_is_read_and_its_word_is_kept(
    raw: Any, state: str, terminal: bool, known: bool
) -> None:
    seen = box(state=raw)

    assert (seen.state, seen.is_terminal, seen.is_known_state, seen.is_up) == (state, terminal, known, False)
    assert seen.raw_state == (raw if isinstance(raw, str) and raw else None)


def test_state_wins_over_status_and_setup_has_two_spellings() -> None:
    seen = box(state="ready", status="archived", setup_status="failed", setup_error="exit 1")

    assert (seen.state, seen.setup_status, seen.setup_error) == ("ready", SetupStatus.FAILED, "exit 1")


@pytest.mark.parametrize(
    ("said", "status", "ended"),
    [
        ("done", "done", True),
        ("failed", "failed", True),
        ("running", "running", False),
        ("pending", "pending", False),
        ("new-word", "pending", False),
        (None, "pending", True),
    ],
)
def test_an_unknown_setup_status_is_pending_and_none_means_nothing_to_set_up(
    said: str | None, status: str, ended: bool
) -> None:
    seen = box(state="ready", setupStatus=said)

    assert (seen.setup_status, seen.is_setup_ended) == (status, ended)


@pytest.mark.parametrize(
    "said",
    [
        "2026-11-30T11:00:00Z",
        "2026-11-30T11:00:00.000+00:00",
        "2026-11-30T12:00:00+01:00",
        "2026-11-30T11:00:00",
        1796036400,
        1796036400000,
        1796036400.0,
    ],
)
def test_a_time_is_read_in_every_form(said: Any) -> None:
    assert box(createdAt=said).created_at == box(created_at=said).created_at == NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    "said", ["soon", "", True, 10**30, float("inf"), -(10**20), [], {}, "99999-01-01T00:00:00Z"]
)
def test_a_time_that_is_none_is_left_out(said: Any) -> None:
    assert box(createdAt=said).created_at is None


def test_an_age_is_never_negative_and_the_far_future_has_none() -> None:
    assert box(createdAt="2026-11-30T11:00:00Z").age(NOW) == timedelta(hours=1)
    assert box(createdAt="2026-11-30T12:01:00Z").age(NOW) == timedelta(0)
    assert box(createdAt="9999-12-31T23:59:59Z").age(NOW) is None
    assert box().age(NOW) is None


def test_the_marker_must_be_the_whole_name() -> None:
    assert box(name="oab-test").is_named("oab-test")
    assert not any(
        box(name=name).is_named("oab-test") for name in ("oab-test ", "OAB-TEST", "oab-test-2", None, 7)
    )


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        ({"settledCostMicrousd": 12_345}, 12_345),
        ({"settled_cost_microusd": "12345"}, 12_345),
        ({"costMicrousd": 0}, 0),
        ({"cost_microusd": "+7"}, 7),
        ({"usage": {"settledCostMicrousd": 5}}, 5),
        ({"usage": {"settled_cost_microusd": "5"}}, 5),
        ({"settledCostMicrousd": None, "costMicrousd": 9}, 9),
        ({"settledCostMicrousd": 1, "costMicrousd": 9}, 1),
        ({"costMicrousd": 3, "usage": {"settledCostMicrousd": 5}}, 3),
        ({"settledCostMicrousd": "many", "costMicrousd": 9}, None),
        ({"settledCostMicrousd": -1}, None),
        ({"settledCostMicrousd": "-1"}, None),
        ({"settledCostMicrousd": 1.5}, None),
        ({"settledCostMicrousd": "1.5"}, None),
        ({"settledCostMicrousd": " 5"}, None),
        ({"settledCostMicrousd": "٥"}, None),
        ({"settledCostMicrousd": True}, None),
        ({"settledCostMicrousd": 2**63}, None),
        ({"settledCostMicrousd": "9" * 5000}, None),
        ({"usage": {"costMicrousd": 5}}, None),
        ({"usage": "none"}, None),
        ({}, None),
    ],
)
def test_a_cost_is_read_from_the_first_field_that_is_there(said: dict[str, Any], cost: int | None) -> None:
    assert parse_cost_microusd(said) == cost


@unhurried
@given(st.integers(0, 10**15))
def test_dollars_with_six_decimals_are_exact(microusd: int) -> None:
    dollars = Decimal(microusd) / 1_000_000
    written = json.loads(f'{{"dollars": {dollars:f}}}') if microusd < 10**14 else {"dollars": f"{dollars:f}"}

    assert parse_usage(written).cost_microusd == microusd


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        ({"dollars": "0.01"}, 10_000),
        ({"dollars": 1}, 1_000_000),
        ({"dollars": 0.0000005}, 1),
        ({"seconds": 1234, "secondsPerDollar": 100_000}, 12_340),
        ({"usage": {"dollars": 0.5, "seconds": 7}}, 500_000),
        ({"settledCostMicrousd": 3}, 3),
        ({"dollars": -1}, None),
        ({"dollars": float("nan")}, None),
        ({"dollars": "1e400"}, None),
        ({"dollars": 1e300}, None),
        ({"dollars": True}, None),
        ({"dollars": "free"}, None),
        ({"seconds": 5, "secondsPerDollar": 0}, None),
        ({"seconds": -5, "secondsPerDollar": 10}, None),
        ({}, None),
    ],
)
def test_usage_that_cannot_be_read_is_unknown_and_never_zero(said: dict[str, Any], cost: int | None) -> None:
    assert parse_usage(said).cost_microusd == cost


def texts(value: Any) -> Iterator[str]:
    """Every key and text within a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        yield from (text for item in value.values() for text in texts(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in texts(item))


@unhurried
@given(st.dictionaries(st.text(), JSON))
def test_what_is_kept_of_a_box_can_always_be_stored(entry: dict[str, Any]) -> None:
    document = json_object(json.dumps({"box": {**entry, "id": "bx_1"}}).encode())
    assert document is not None
    kept = dict(parse_box(unwrapped(document), "bx_1").raw)

    assert json.dumps(kept, allow_nan=False)
    assert all("\x00" not in text and text.encode() is not None for text in texts(kept))


@unhurried
@given(st.binary())
def test_any_bytes_are_an_object_or_nothing(body: bytes) -> None:
    assert json_object(body) is None or isinstance(json_object(body), dict)


def test_what_postgresql_cannot_store_is_replaced() -> None:
    document = json_object(
        b'{"a\\u0000": "x\\u0000y", "b": "\\ud800", "c": NaN, "d": 1e999, "e": [-Infinity], "f": "\\ud83d\\ude42"}'
    )

    assert document == {"a\ufffd": "x\ufffdy", "b": "\ufffd", "c": None, "d": None, "e": [None], "f": "🙂"}


def test_a_number_of_thousands_of_digits_is_no_answer() -> None:
    assert json_object(b'{"settledCostMicrousd": ' + b"9" * 10_000 + b"}") is None
