"""How signs of life become words, decided from the figures alone."""

from __future__ import annotations

from typing import Any

import pytest

from openagents_site.dashboard.figures import Now, Pass
from openagents_site.dashboard.health import Finding, findings, is_good


def now(**changes: Any) -> Now:
    well: dict[str, Any] = {
        "boxes": {}, "burn_rate_microusd": 0, "runs": {}, "oldest_run_seconds": 0.0, "spent_today_microusd": 0,
        "spent_month_microusd": 0, "leaks": {}, "incidents": {}, "ended_last_day": {}, "queues": [], "workers": 2,
        "heartbeats": {"scheduler": 20.0}, "passes": [reconcile()],
        "started": {},
    }  # fmt: skip
    return Now(**(well | changes))


def reconcile(**changes: Any) -> Pass:
    well: dict[str, Any] = {
        "failures": 0,
        "late_seconds": -30.0,
        "interval_seconds": 60.0,
        "age_seconds": 30.0,
        "error": None,
    }
    return Pass("reconcile", **(well | changes))


def finding(name: str, found: list[Finding]) -> Finding:
    return next(each for each in found if each.name == name)


def test_a_sound_installation_is_well() -> None:
    found = findings(now(), has_key=True)

    assert is_good(found)
    assert [(each.name, each.said) for each in found] == [
        ("Workers", "2 alive"),
        ("Scheduler", "worked 20 s ago"),
        ("Pass reconcile", "ended 30 s ago"),
        ("Provider", "answered 30 s ago"),
    ]


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"workers": 0}, "Workers", "none is alive"),
        ({"workers": None}, "Workers", "not known"),
        ({"heartbeats": {}}, "Scheduler", "never worked"),
        ({"heartbeats": None}, "Scheduler", "not known"),
        ({"passes": None}, "Passes and provider", "not known"),
        ({"heartbeats": {"scheduler": 181.0}}, "Scheduler", "silent for 3 min"),
        ({"passes": [reconcile(late_seconds=121.0)]}, "Pass reconcile", "2 min late"),
        (
            {"passes": [reconcile(failures=3, error="box_unreachable")]},
            "Pass reconcile",
            "failed 3 times in a row: box_unreachable",
        ),
        (
            {"passes": [reconcile(failures=1, error="box_unreachable")]},
            "Provider",
            "did not answer as expected 30 s ago: box_unreachable",
        ),
    ],
    ids=[
        "no worker",
        "workers not known",
        "no scheduler",
        "scheduler not asked",
        "passes not asked",
        "silent scheduler",
        "late pass",
        "failing pass",
        "provider",
    ],
)
def test_what_is_not_well_is_said_with_what_to_do(changes: dict[str, Any], name: str, said: str) -> None:
    found = finding(name, findings(now(**changes), has_key=True))

    assert (found.is_good, found.said, bool(found.remedy)) == (False, said, True)


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"heartbeats": {}}, "Scheduler", "just starting, 30 s ago: never worked yet"),
        ({"heartbeats": {"scheduler": 7200.0}}, "Scheduler", "just starting, 30 s ago: silent for 2 h 00 min yet"),
        ({"workers": 0}, "Workers", "just starting, 30 s ago: none is alive yet"),
    ],
    ids=["first scheduler", "scheduler", "worker"],
)  # fmt: skip
def test_what_is_just_starting_is_given_its_time(changes: dict[str, Any], name: str, said: str) -> None:
    begun = {"scheduler": 30.0, "worker": 30.0}
    found = finding(name, findings(now(started=begun, **changes), has_key=True))
    assert (found.is_good, found.is_starting, found.said) == (False, True, said)

    late = dict.fromkeys(begun, 121.0)
    assert not finding(name, findings(now(started=late, **changes), has_key=True)).is_starting


def test_without_a_key_the_provider_is_not_well() -> None:
    assert not finding("Provider", findings(now(), has_key=False)).is_good


def test_before_the_first_pass_nothing_is_wrong() -> None:
    found = findings(now(passes=[reconcile(age_seconds=None)]), has_key=True)

    assert is_good(found)
    assert finding("Provider", found).said == "not asked yet"
