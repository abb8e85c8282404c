"""What is decided about a delegation, from facts alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from work.delegations.decide import Facts, Fail, Offer, Policy, Wait, decide

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
POLICY = Policy(reconnect=timedelta(seconds=90))


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)


def facts(**known: Any) -> Facts:
    """A delegation of ten minutes, offered and taken, on a machine that is there."""
    usual = {
        "now": NOW,
        "started_at": NOW - seconds(10),
        "timeout": seconds(600),
        "online": True,
        "offline_at": NOW + seconds(40),
        "connected_at": NOW - seconds(300),
        "resumes": False,
        "offered_at": NOW - seconds(9),
        "accepted_at": NOW - seconds(8),
        "absent_until": None,
    }
    return Facts(**(usual | known))


def new(**known: Any) -> Facts:
    return facts(**({"offered_at": None, "accepted_at": None} | known))


GONE: dict[str, Any] = {"online": False, "offline_at": NOW - seconds(5)}


@pytest.mark.parametrize(
    ("known", "action"),
    [
        (new(), Offer()),
        (new(**GONE), Fail("machine_offline")),
        (new(**GONE, resumes=True), Wait(NOW + seconds(80))),
        (new(**GONE, resumes=True, started_at=NOW - seconds(90)), Fail("machine_offline")),
        (facts(), Wait(NOW + seconds(40))),
        (facts(offline_at=NOW + seconds(4000)), Wait(NOW + seconds(606))),
        (facts(offered_at=NOW - seconds(615)), Fail("timeout")),
        (facts(offered_at=NOW - seconds(614.9)), Wait(NOW + seconds(0.1))),
        (facts(offered_at=NOW - seconds(900), connected_at=NOW - seconds(5)), Wait(NOW + seconds(10))),
        (facts(accepted_at=None, offered_at=NOW - seconds(60)), Fail("machine_timeout")),
        (facts(accepted_at=None, offered_at=NOW - seconds(70), connected_at=NOW), Wait(NOW + seconds(40))),
        (facts(**GONE), Wait(NOW + seconds(90), NOW + seconds(90))),
        (facts(**GONE, absent_until=NOW + seconds(30)), Wait(NOW + seconds(30), NOW + seconds(30))),
        (facts(**GONE, absent_until=NOW), Fail("machine_disconnected")),
        (facts(**GONE, absent_until=NOW - seconds(15)), Fail("machine_disconnected")),
        (facts(**GONE, absent_until=NOW - seconds(16)), Wait(NOW + seconds(90), NOW + seconds(90))),
        (facts(absent_until=NOW + seconds(30)), Wait(NOW + seconds(40))),
        (facts(**GONE, offered_at=NOW - seconds(4000)), Wait(NOW + seconds(90), NOW + seconds(90))),
    ],
)  # fmt: skip
def test_it_decides(known: Facts, action: Any) -> None:
    assert decide(known, POLICY) == action


moments = st.integers(-5000, 5000).map(lambda n: NOW + seconds(n))


@given(
    st.builds(
        Facts,
        now=st.just(NOW),
        started_at=moments,
        timeout=st.integers(1, 3600).map(seconds),
        online=st.booleans(),
        offline_at=st.none() | moments,
        connected_at=st.none() | moments,
        resumes=st.booleans(),
        offered_at=st.none() | moments,
        accepted_at=st.none() | moments,
        absent_until=st.none() | moments,
    )
)
def test_it_offers_once_and_never_gives_up_what_a_present_machine_may_still_tell(known: Facts) -> None:
    action = decide(known, POLICY)

    assert isinstance(action, Offer) == (known.offered_at is None and known.online)
    if isinstance(action, Fail) and action.code == "timeout":
        assert known.offered_at is not None
        assert known.now >= known.offered_at + known.timeout
