"""What is done about one row, by table."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from boxes.reconciler.decide import AS_NOTED, decide
from boxes.reconciler.types import (
    Ask,
    BackOff,
    Deferred,
    End,
    Failed,
    Leave,
    Missing,
    Note,
    Notice,
    PutOff,
    Seen,
    Stop,
)
from boxes.states import BoxState, EventType, SetupStatus, StopReason
from tests.boxes.reconciler.plain import LIST_POLICY, MARKER, NOW, POLICY, ago, box, row

OLD = {"created_at": ago(3600)}
IDLE = {"idle_since": ago(1800)}
CLAIMED = {"stop_requested_at": ago(89), "stop_requested_reason": StopReason.USER_REQUESTED}
ABANDONED = {"stop_requested_at": ago(90), "stop_requested_reason": StopReason.USER_REQUESTED}


def test_a_stopped_row_is_left() -> None:
    assert decide(row(stopped_at=ago(1)), Seen(box()), NOW, POLICY) == Leave("stopped")


def test_a_row_without_an_id_is_left_to_whoever_creates_it() -> None:
    assert decide(row(box_id=None), None, NOW, POLICY) == Leave("being created")


@pytest.mark.parametrize("seen", [None, Seen(box()), Missing(), Failed("box_unreachable", counts=True)])
def test_a_row_that_backs_off_is_not_even_asked_about(seen: Any) -> None:
    assert decide(row(next_reconciliation_at=ago(-1), **OLD), seen, NOW, POLICY) == Leave("backing off")


def test_a_row_is_due_again_at_its_time() -> None:
    assert decide(row(next_reconciliation_at=NOW), None, NOW, POLICY) == Ask("due")


@pytest.mark.parametrize(
    "seen", [None, Seen(box()), Missing(), Failed("box_malformed_id", counts=False), Deferred(5)]
)
def test_an_id_that_cannot_be_asked_about_is_an_event_and_never_an_end(seen: Any) -> None:
    action = decide(row(is_askable=False, **OLD), seen, NOW, POLICY)

    assert action == BackOff(
        "box_malformed_id", (Notice(EventType.MALFORMED_ID, "id_cannot_be_asked_about"),)
    )


def test_a_healthy_box_is_noted() -> None:
    assert decide(row(), Seen(box("running")), NOW, POLICY) == Note(BoxState.RUNNING, SetupStatus.DONE)


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        ("done", None, "done"),
        ("pending", None, "pending"),
        ("done", "failed", "failed"),
        ("pending", "done", "done"),
    ],
)
def test_a_setup_that_is_over_does_not_begin_anew_because_nothing_is_said(
    before: str, said: str | None, after: str
) -> None:
    action = decide(row(setup_status=SetupStatus(before)), Seen(box(setupStatus=said)), NOW, POLICY)

    assert action == Note(BoxState.READY, SetupStatus(after))


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("archived", "archived"),
        ("stopped", "archived"),
        ("terminated", "archived"),
        ("deleted", "archived"),
        ("error", "error"),
        ("cancelled", "error"),
        ("TERMINATED", "archived"),
    ],
)
def test_what_the_provider_ended_is_ended(word: str, state: str) -> None:
    action = decide(row(), Seen(box(word, settledCostMicrousd="12345")), NOW, POLICY)

    assert action == End(
        BoxState(state), StopReason.PROVIDER_TERMINAL, 12_345, f"the provider says {word.lower()}"
    )


@pytest.mark.parametrize("word", ["archiving", "stopping", "securing", "hibernating", "", None])
def test_no_other_word_ends_anything(word: str | None) -> None:
    assert isinstance(decide(row(), Seen(box(word)), NOW, POLICY), Note)


@pytest.mark.parametrize(
    ("word", "said"), [("hibernating", "hibernating"), (None, "missing"), ("x" * 300, "x" * 64)]
)
def test_an_unknown_state_is_stored_as_not_usable_and_made_visible(word: str | None, said: str) -> None:
    action = decide(row(), Seen(box(word)), NOW, POLICY)

    assert action == Note(
        BoxState.PROVISIONING,
        SetupStatus.DONE,
        notices=(Notice(EventType.UNKNOWN_STATE, f"state_{said}"),),
    )


def test_a_box_in_an_unknown_state_is_stopped_when_its_time_is_up() -> None:
    action = decide(row(**OLD), Seen(box("hibernating")), NOW, POLICY)

    assert isinstance(action, Stop)
    assert action.note.notices == (Notice(EventType.UNKNOWN_STATE, "state_hibernating"),)


def test_a_missing_box_is_written_off() -> None:
    assert decide(row(), Missing(), NOW, POLICY) == End(
        BoxState.ARCHIVED, StopReason.PROVIDER_MISSING, None, "gone at the provider"
    )


@pytest.mark.parametrize("code", ["box_unreachable", "box_rate_limited"])
def test_silence_only_backs_off(code: str) -> None:
    assert decide(row(**OLD), Failed(code, counts=True), NOW, POLICY) == BackOff(code)


@pytest.mark.parametrize(
    "code", ["box_unauthorized", "box_billing_required", "box_response_invalid", "box_provider_refused"]
)
def test_an_answer_that_cannot_be_used_changes_nothing(code: str) -> None:
    action = decide(row(**OLD), Failed(code, counts=False), NOW, POLICY)

    assert action == Leave(f"unusable answer: {code}", unanswered=True)


def test_a_row_that_was_not_asked_about_is_put_off() -> None:
    assert decide(row(**OLD), Deferred(120.0), NOW, POLICY) == PutOff(120.0)


# time and idleness


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"created_at": ago(3600)}, StopReason.TTL_EXPIRED),
        ({"created_at": ago(3599.9)}, None),
        ({"created_at": ago(3600), "extended_until": ago(-1)}, None),
        ({"created_at": ago(3700), "extended_until": ago(0)}, StopReason.TTL_EXPIRED),
        ({"created_at": ago(86_400), "extended_until": ago(-9999)}, StopReason.TTL_EXPIRED),
        ({"created_at": ago(86_399), "extended_until": ago(-9999)}, None),
        ({"created_at": ago(-9_999_999)}, None),  # made in the future, says a clock
        ({"idle_since": ago(1800)}, StopReason.IDLE_TIMEOUT),
        ({"idle_since": ago(1799.9)}, None),
        ({"idle_since": None}, None),
        ({"idle_since": ago(-60)}, None),
        ({"created_at": ago(3600), "idle_since": None}, StopReason.TTL_EXPIRED),  # a live run gives no time
        ({"created_at": ago(3600), "idle_since": ago(3000)}, StopReason.TTL_EXPIRED),
    ],
)
def test_when_a_box_is_stopped(fields: dict[str, Any], reason: StopReason | None) -> None:
    action = decide(row(**fields), Seen(box()), NOW, POLICY)

    assert (action.reason if isinstance(action, Stop) else None) == reason


def test_a_stop_says_why() -> None:
    ttl = decide(row(**OLD), Seen(box()), NOW, POLICY)
    idle = decide(row(**IDLE), Seen(box()), NOW, POLICY)

    assert isinstance(ttl, Stop)
    assert isinstance(idle, Stop)
    assert ttl.why == "its time was up at 12:00:00 (ttl)"
    assert idle.why == "idle since 11:30:00"


def test_an_ended_box_is_ended_and_not_stopped_however_old() -> None:
    assert isinstance(decide(row(**OLD, **IDLE), Seen(box("archived")), NOW, POLICY), End)


# names


@pytest.mark.parametrize("fields", [OLD, IDLE])
@pytest.mark.parametrize("name", ["renamed", None, MARKER + " ", MARKER.upper(), ""])
def test_a_box_under_another_name_is_not_stopped_and_not_forgotten(fields: Any, name: str | None) -> None:
    action = decide(row(**fields), Seen(box(name=name)), NOW, POLICY)

    assert isinstance(action, Note)
    assert action.notices == (Notice(EventType.MARKER_MISSING, "not_stopped_under_another_name"),)


def test_a_renamed_box_is_noticed_before_its_time_is_up() -> None:
    action = decide(row(), Seen(box(name="renamed")), NOW, POLICY)

    assert isinstance(action, Note)
    assert action.notices == (Notice(EventType.MARKER_MISSING, "box_under_another_name"),)


def test_an_answer_without_a_name_is_no_renamed_box() -> None:
    action = decide(row(), Seen(box(name=None)), NOW, POLICY)

    assert isinstance(action, Note)
    assert action.notices == ()


def test_a_box_of_ours_that_has_not_our_name_yet_gets_it() -> None:
    action = decide(row(is_ours_to_mark=True), Seen(box(name="Box 1")), NOW, POLICY)

    assert action == Note(BoxState.READY, SetupStatus.DONE, needs_mark=True)


def test_a_box_that_has_our_name_is_known_to_have_it() -> None:
    action = decide(row(is_ours_to_mark=True), Seen(box()), NOW, POLICY)

    assert action == Note(BoxState.READY, SetupStatus.DONE, is_marked=True)


def test_a_box_that_could_not_be_named_is_noticed_when_it_cannot_be_stopped() -> None:
    action = decide(row(is_ours_to_mark=True, **OLD), Seen(box(name="Box 1")), NOW, POLICY)

    assert isinstance(action, Note)
    assert action.needs_mark
    assert [notice.event_type for notice in action.notices] == [EventType.MARKER_MISSING]


# stops that somebody asked for


@pytest.mark.parametrize("seen", [Missing(), Seen(box("archived")), Seen(box("error"))])
def test_whoever_is_stopping_the_box_ends_the_row(seen: Any) -> None:
    assert isinstance(decide(row(**CLAIMED), seen, NOW, POLICY), Leave)


def test_a_claim_in_flight_is_never_doubled() -> None:
    assert isinstance(decide(row(**CLAIMED, **OLD, **IDLE), Seen(box()), NOW, POLICY), Note)


@pytest.mark.parametrize("name", [MARKER, "renamed"])
def test_a_stop_that_nobody_carried_out_is_carried_out(name: str) -> None:
    action = decide(row(**ABANDONED), Seen(box(name=name)), NOW, POLICY)

    assert isinstance(action, Stop)
    assert action.reason == StopReason.USER_REQUESTED


@pytest.mark.parametrize(
    ("fields", "reason"), [({}, StopReason.USER_REQUESTED), (OLD, StopReason.TTL_EXPIRED)]
)
def test_an_old_claim_without_a_reason_gets_the_likeliest(fields: Any, reason: StopReason) -> None:
    action = decide(row(stop_requested_at=ago(600), **fields), Seen(box()), NOW, POLICY)

    assert isinstance(action, Stop)
    assert action.reason == reason


def test_a_box_that_came_down_after_its_claimant_died_ended_as_it_was_asked_to() -> None:
    action = decide(row(**ABANDONED), Seen(box("archived")), NOW, POLICY)

    assert isinstance(action, End)
    assert (action.state, action.reason) == (BoxState.ARCHIVED, StopReason.USER_REQUESTED)


def test_a_box_that_failed_or_vanished_under_an_old_claim_did_not_end_as_asked() -> None:
    failed = decide(row(**ABANDONED), Seen(box("error")), NOW, POLICY)
    vanished = decide(row(**ABANDONED), Missing(), NOW, POLICY)

    assert isinstance(failed, End)
    assert isinstance(vanished, End)
    assert (failed.reason, vanished.reason) == (StopReason.PROVIDER_TERMINAL, StopReason.PROVIDER_MISSING)


# the listing as evidence


def test_a_healthy_entry_of_the_listing_is_enough() -> None:
    assert isinstance(decide(row(), Seen(box(), confirmed=False), NOW, LIST_POLICY), Note)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, box("archived")),
        ({}, box("error")),
        ({}, box("hibernating")),
        ({}, box(name="renamed")),
        (OLD, box()),
        (IDLE, box()),
        (OLD, box(name="renamed")),
        (ABANDONED, box()),
        ({"is_ours_to_mark": True}, box(name="Box 1")),
    ],
)
def test_everything_else_in_the_listing_is_confirmed_first(fields: Any, shown: Any) -> None:
    assert isinstance(decide(row(**fields), Seen(shown, confirmed=False), NOW, LIST_POLICY), Ask)


NOTED = {"state": BoxState.READY, "setup_status": SetupStatus.DONE, "last_reconciled_at": ago(299)}


def test_a_row_that_is_as_it_was_noted_is_not_written_again_for_a_while() -> None:
    assert decide(row(**NOTED), Seen(box(), confirmed=False), NOW, LIST_POLICY) == AS_NOTED


@pytest.mark.parametrize(
    "change",
    [
        {"last_reconciled_at": ago(300)},
        {"last_reconciled_at": None},
        {"state": BoxState.IDLE},
        {"setup_status": SetupStatus.RUNNING},
        {"reconciliation_failures": 1},
        {"next_reconciliation_at": ago(1)},
        {"is_ours_to_mark": True},
    ],
)
def test_what_changed_since_it_was_noted_is_written(change: dict[str, Any]) -> None:
    action = decide(row(**NOTED | change), Seen(box(), confirmed=False), NOW, LIST_POLICY)

    assert isinstance(action, Note)


def test_a_look_of_its_own_is_always_written() -> None:
    assert isinstance(decide(row(**NOTED), Seen(box()), NOW, LIST_POLICY), Note)


def test_a_row_that_the_listing_lacks_is_asked_about() -> None:
    assert decide(row(), None, NOW, LIST_POLICY) == Ask("not in the listing")


def test_a_wrong_clock_stops_nothing_by_idleness() -> None:
    policy = replace(POLICY, idle_timeout=timedelta(seconds=1))

    assert isinstance(decide(row(idle_since=ago(-3600)), Seen(box()), NOW, policy), Note)
