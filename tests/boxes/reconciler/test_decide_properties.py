"""What holds for every row, whatever is seen of its box."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from boxes.client import ProviderBox
from boxes.reconciler.decide import decide
from boxes.reconciler.types import (
    Action,
    Ask,
    BackOff,
    Deferred,
    End,
    Failed,
    Leave,
    Missing,
    Note,
    Observation,
    Policy,
    PutOff,
    Row,
    Seen,
    Stop,
)
from boxes.states import BoxState, SetupStatus, StopReason
from tests.boxes.reconciler.plain import LIST_POLICY, MARKER, NOW, POLICY, ago, box, row

moments = st.none() | st.floats(-100_000, 100_000).map(ago)
words = (
    st.none()
    | st.sampled_from(
        ["init", "provisioning", "cloning", "ready", "idle", "running", "archiving", "archived", "error"]
    )
    | st.sampled_from(
        ["stopped", "terminated", "deleted", "cancelled", "stopping", "securing", "limbo", "READY"]
    )
)
names = st.sampled_from([MARKER, "Box 1", None, ""])
costs = st.none() | st.integers(-5, 2**70) | st.sampled_from(["12", "-1", "x"])
shown = st.builds(lambda word, name, cost: box(word, name=name, costMicrousd=cost), words, names, costs)
failures = st.builds(
    Failed, st.sampled_from(["box_unreachable", "box_rate_limited", "box_unauthorized"]), st.booleans()
)
silence = st.one_of(failures, st.floats(0, 3600).map(Deferred))
rows = st.builds(
    row,
    box_id=st.sampled_from(["bx_8bhkse3n", "bx_8bhkse3n", None]),
    created_at=st.floats(-100_000, 100_000).map(ago),
    extended_until=moments,
    idle_since=moments,
    stopped_at=st.none() | st.none() | moments,
    stop_requested_at=st.none() | st.floats(0, 200).map(ago),
    stop_requested_reason=st.none() | st.sampled_from(StopReason),
    next_reconciliation_at=st.none() | moments,
    state=st.sampled_from(BoxState),
    setup_status=st.sampled_from(SetupStatus),
    last_reconciled_at=st.none() | st.floats(0, 600).map(ago),
    reconciliation_failures=st.integers(0, 2),
    is_askable=st.sampled_from([True, True, True, False]),
    is_ours_to_mark=st.booleans(),
)
policies = st.sampled_from([POLICY, LIST_POLICY])
observations = st.one_of(
    st.none(), st.just(Missing()), silence, st.builds(Seen, shown, confirmed=st.booleans())
)


def ends(action: Action) -> bool:
    return isinstance(action, End | Stop)


@given(rows, observations, policies)
def test_every_row_gets_a_decision_with_a_reason(row: Row, seen: Observation | None, policy: Policy) -> None:
    action = decide(row, seen, NOW, policy)

    assert isinstance(action, Leave | Ask | Note | Stop | End | BackOff | PutOff)
    assert action.why


@given(rows, silence, policies)
def test_silence_never_ends_anything(row: Row, seen: Observation, policy: Policy) -> None:
    assert not ends(decide(row, seen, NOW, policy))
    assert not isinstance(decide(row, seen, NOW, policy), Note)


@given(rows, st.one_of(st.none(), shown.map(lambda box: Seen(box, confirmed=False))), policies)
def test_nothing_ends_without_an_answer_about_this_box_alone(
    row: Row, seen: Observation | None, policy: Policy
) -> None:
    assert not ends(decide(row, seen, NOW, policy))


@given(rows, observations, policies)
def test_what_is_stopped_backing_off_or_not_askable_never_ends(
    row: Row, seen: Observation | None, policy: Policy
) -> None:
    for change in (
        {"stopped_at": NOW},
        {"next_reconciliation_at": NOW + timedelta(seconds=1)},
        {"is_askable": False},
        {"box_id": None},
    ):
        assert not ends(decide(replace(row, **change), seen, NOW, policy))  # type: ignore[arg-type]


@given(rows, observations, policies, st.floats(0, 89.9))
def test_a_claim_in_flight_is_never_doubled(
    row: Row, seen: Observation | None, policy: Policy, age: float
) -> None:
    assert not ends(decide(replace(row, stop_requested_at=ago(age)), seen, NOW, policy))


@given(rows, shown, policies)
def test_an_end_repeats_what_the_provider_said(row: Row, shown: ProviderBox, policy: Policy) -> None:
    action = decide(row, Seen(shown), NOW, policy)

    if isinstance(action, End):
        assert shown.is_terminal
        assert action.cost_microusd == shown.cost_microusd
    if isinstance(action, Stop):
        assert shown.is_named(MARKER) or row.stop_requested_at is not None


@given(rows, names)
def test_an_unknown_state_never_ends(row: Row, name: str | None) -> None:
    assert not isinstance(decide(row, Seen(box("limbo", name=name)), NOW, POLICY), End)


@given(rows)
def test_time_beats_a_live_run(row: Row) -> None:
    alive = replace(row, idle_since=None, stop_requested_at=None)
    action = decide(replace(alive, created_at=ago(100_000)), Seen(box()), NOW, POLICY)

    assert not isinstance(action, Note)
    if isinstance(action, Stop):
        assert action.reason == StopReason.TTL_EXPIRED


def outcome(row: Row, policy: Policy, listed: ProviderBox | None, own: Observation) -> Any:
    """What comes of a row in a pass that reads the listing and looks where it is asked to."""
    first = decide(
        row, Seen(listed, confirmed=False) if policy.evidence == "list" and listed else None, NOW, policy
    )
    action = decide(row, own, NOW, policy) if isinstance(first, Ask) else first
    if isinstance(action, Leave) and action.is_well:  # the row says already what would be noted
        action = Note(row.state, row.setup_status)
    return replace(action, why="") if not isinstance(action, BackOff) else action


@given(rows, st.none() | shown)
def test_both_kinds_of_evidence_end_in_the_same_ledger(row: Row, exists: ProviderBox | None) -> None:
    own: Observation = Seen(exists) if exists is not None else Missing()
    listed = exists if exists is not None and exists.raw_state != "archived" else None

    assert outcome(row, LIST_POLICY, listed, own) == outcome(row, POLICY, listed, own)
