"""What the database itself refuses: raw SQL and the admin cannot break the ledger either."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from base.clock import database_now
from boxes import fanout
from boxes.models import Box, FanoutItem, FanoutRequest, Installation, ReconciliationEvent
from boxes.states import BoxState, SetupStatus, StopReason
from conversations.models import Conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import again

pytestmark = pytest.mark.django_db


def run_sql(statement: str, *parameters: Any, at_once: bool = False) -> None:
    """Run a statement; `at_once` also checks what is otherwise checked at the commit."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        if at_once:
            cursor.execute("set constraints all immediate")


def set_sql(box: Box, assignment: str, *parameters: Any) -> None:
    run_sql(f"update conversation_boxes set {assignment} where id = %s", *parameters, box.pk)


@pytest.fixture
def box(make_box: MakeBox) -> Box:
    return make_box("bx_8bhkse3n", label="web")


@pytest.fixture
def stopped(make_box: MakeBox) -> Box:
    """A stopped box whose cost is not known yet."""
    return make_box(
        "bx_stopped1",
        label="old",
        state="archiving",
        stopped_at=database_now(),
        stop_reason="user_requested",
        lifetime_seconds=90,
    )


@pytest.fixture
def settled(stopped: Box) -> Box:
    set_sql(stopped, "settled_cost_microusd = 12345, usage_settled_at = now()")
    return again(stopped)


def test_a_row_with_few_fields_is_valid_and_due(conversation: Conversation) -> None:
    box = Box.objects.create(
        conversation=conversation, box_id="bx_8bhkse3n", state="ready", setup_status="done"
    )

    row = again(box)
    assert row.label == "box-bx_8bhkse3n"
    assert (row.next_reconciliation_at, row.reconciliation_failures, row.generation) == (None, 0, 0)


def test_a_label_without_one_is_cut(conversation: Conversation) -> None:
    assert Box.objects.create(conversation=conversation, box_id="b" * 200).label == "box-" + "b" * 64


@pytest.mark.parametrize(
    ("assignment", "constraint"),
    [
        ("state = 'sleeping'", "conversation_boxes_state_check"),
        ("state = ''", "conversation_boxes_state_check"),
        ("setup_status = 'half'", "conversation_boxes_setup_status_check"),
        ("stop_reason = 'no_reason'", "conversation_boxes_stop_reason_check"),
        ("reconciliation_failures = -1", "conversation_boxes_usage_check"),
        ("lifetime_seconds = -1", "conversation_boxes_usage_check"),
        ("settled_cost_microusd = -1", "conversation_boxes_usage_check"),
        ("estimated_burn_rate_microusd = -1", "conversation_boxes_usage_check"),
        ("label = ''", "conversation_boxes_label_check"),
        ("create_attempts = -1", "create_attempts_check"),
    ],
)
def test_a_value_that_means_nothing_is_refused(box: Box, assignment: str, constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        set_sql(box, assignment)


@pytest.mark.parametrize("state", BoxState.values)
@pytest.mark.parametrize("setup_status", SetupStatus.values)
def test_an_active_box_may_be_seen_in_any_state(box: Box, state: str, setup_status: str) -> None:
    set_sql(box, "state = %s, setup_status = %s", state, setup_status)

    assert (again(box).state, again(box).setup_status) == (state, setup_status)


@pytest.mark.parametrize("reason", StopReason.values)
def test_every_reason_can_be_written(box: Box, reason: str) -> None:
    set_sql(box, "stop_reason = %s, stopped_at = now()", reason)


def test_two_active_boxes_of_a_conversation_have_two_labels(box: Box, make_box: MakeBox) -> None:
    with pytest.raises(IntegrityError, match="conversation_boxes_active_label_index"), transaction.atomic():
        make_box("bx_2", label="web")


def test_a_stopped_box_holds_no_label(stopped: Box, make_box: MakeBox) -> None:
    assert make_box("bx_2", label="old").label == "old"


def test_a_provider_id_is_one_box(box: Box, other_conversation: Conversation, make_box: MakeBox) -> None:
    with pytest.raises(IntegrityError, match="box_id"), transaction.atomic():
        make_box("bx_8bhkse3n", conversation=other_conversation, label="other")


def test_many_reservations_have_no_id(make_box: MakeBox) -> None:
    make_box(None, label="box-1", create_key="a")
    make_box(None, label="box-2", create_key="b")


def test_a_create_key_is_one_box(make_box: MakeBox) -> None:
    make_box(None, label="box-1", create_key="a")

    with pytest.raises(IntegrityError, match="create_key"), transaction.atomic():
        make_box(None, label="box-2", create_key="a")


@pytest.mark.parametrize(
    ("assignment", "parameters"),
    [
        ("box_id = 'bx_another'", ()),
        ("box_id = null", ()),
        ("create_key = 'another'", ()),
        ("create_key = null", ()),
        ("id = gen_random_uuid()", ()),
    ],
)
def test_who_a_box_is_does_not_change(
    make_box: MakeBox, assignment: str, parameters: tuple[Any, ...]
) -> None:
    box = make_box("bx_8bhkse3n", create_key="key")

    with pytest.raises(DatabaseError, match="box identity is immutable"):
        set_sql(box, assignment, *parameters)


def test_whose_a_box_is_does_not_change(box: Box, other_conversation: Conversation) -> None:
    with pytest.raises(DatabaseError, match="box identity is immutable"):
        set_sql(box, "conversation_id = %s", other_conversation.pk)


def test_an_id_may_be_bound_once(make_box: MakeBox) -> None:
    box = make_box(None, label="box-1", create_key="key")
    set_sql(box, "box_id = 'bx_8bhkse3n'")

    with pytest.raises(DatabaseError, match="box identity is immutable"):
        set_sql(box, "box_id = 'bx_another'")


@pytest.mark.parametrize(
    "assignment",
    [
        "stopped_at = null",
        "stopped_at = now() + interval '1 second'",
        "stop_reason = null",
        "stop_reason = 'ttl_expired'",
        "lifetime_seconds = null",
        "lifetime_seconds = 91",
        "state = 'ready'",
        "state = 'idle'",
        "state = 'provisioning'",
    ],
)
def test_a_stopped_box_stays_as_it_stopped(stopped: Box, assignment: str) -> None:
    with pytest.raises(DatabaseError, match="stopped box is immutable"):
        set_sql(stopped, assignment)


@pytest.mark.parametrize("state", ["archiving", "archived", "error"])
def test_a_stopped_box_may_be_seen_to_end(stopped: Box, state: str) -> None:
    set_sql(stopped, "state = %s", state)


def test_a_box_that_was_stopped_while_it_was_ready_keeps_its_state(make_box: MakeBox) -> None:
    box = make_box("bx_8bhkse3n")
    set_sql(box, "stopped_at = now()")
    set_sql(box, "last_activity_at = now()")

    assert again(box).state == "ready"


def test_a_cost_is_settled_once(stopped: Box) -> None:
    set_sql(stopped, "settled_cost_microusd = 12345, usage_settled_at = now()")

    assert again(stopped).settled_cost_microusd == 12345


@pytest.mark.parametrize(
    "assignment",
    [
        "settled_cost_microusd = 0",
        "settled_cost_microusd = null",
        "settled_cost_microusd = 12346",
        "usage_settled_at = null",
        "usage_settled_at = now() + interval '1 second'",
    ],
)
def test_a_settled_cost_stays(settled: Box, assignment: str) -> None:
    with pytest.raises(DatabaseError, match="settled usage is immutable"):
        set_sql(settled, assignment)


@pytest.mark.parametrize(
    "assignment",
    [
        "last_reconciled_at = now(), reconciliation_failures = 3, reconciliation_error = 'box_unreachable'",
        "next_reconciliation_at = now(), next_settlement_at = now(), undone_sightings = 1",
        "lease_owner = 1, lease_expires_at = now(), generation = generation + 1",
        "last_activity_at = now()",
    ],
)
def test_what_is_noted_of_a_stopped_box_may_change(settled: Box, assignment: str) -> None:
    set_sql(settled, assignment)


@pytest.mark.parametrize("fixture", ["box", "stopped"])
def test_a_row_of_a_box_is_never_deleted(request: pytest.FixtureRequest, fixture: str) -> None:
    kept = request.getfixturevalue(fixture)

    with pytest.raises(DatabaseError, match="Cannot delete"):
        run_sql("delete from conversation_boxes where id = %s", kept.pk)


def test_a_bare_reservation_can_be_undone(make_box: MakeBox) -> None:
    box = make_box(None, label="box-1", create_key="key")
    run_sql("delete from conversation_boxes where id = %s", box.pk)

    assert not Box.objects.exists()


def test_a_conversation_of_a_box_is_never_deleted(box: Box) -> None:
    with pytest.raises(IntegrityError):
        run_sql("delete from conversations where id = %s", box.conversation_id, at_once=True)


def test_every_change_has_its_history(box: Box) -> None:
    set_sql(box, "state = 'idle'")
    set_sql(box, "last_activity_at = now()")  # nothing that tells what became of the box
    set_sql(box, "stopped_at = now(), stop_reason = 'ttl_expired'")

    history = box.history.order_by("pgh_id").values_list("state", "stop_reason")
    assert list(history) == [("ready", None), ("idle", None), ("idle", "ttl_expired")]


def test_history_is_only_added_to(box: Box) -> None:
    for statement in (
        "update conversation_boxes_history set state = 'error'",
        "delete from conversation_boxes_history",
    ):
        with pytest.raises(DatabaseError):
            run_sql(statement)


def test_one_provider_box_has_one_event_of_a_kind(db: None) -> None:
    values = {"provider_box_id": "bx_1", "event_type": "leak", "reason": "x", "observed_at": database_now()}
    ReconciliationEvent.objects.create(**values)

    with pytest.raises(IntegrityError, match="provider_box_id_event_type_index"), transaction.atomic():
        ReconciliationEvent.objects.create(**values)


@pytest.mark.parametrize(
    ("assignment", "constraint"),
    [
        ("event_type = 'gossip'", "box_reconciliation_events_type_check"),
        ("resolution = 'stopped'", "box_reconciliation_events_handled_check"),
    ],
)
def test_an_event_means_something(db: None, assignment: str, constraint: str) -> None:
    ReconciliationEvent.objects.create(
        provider_box_id="bx_1", event_type="leak", reason="x", observed_at=database_now()
    )

    with pytest.raises(IntegrityError, match=constraint):
        run_sql(f"update box_reconciliation_events set {assignment}")


@pytest.mark.parametrize(
    ("table", "assignment", "constraint"),
    [
        ("box_fanout_requests", "requested_count = 0", "box_fanout_requests_counts_check"),
        ("box_fanout_requests", "admitted_count = -1", "box_fanout_requests"),
        ("box_fanout_requests", "state = 'lost'", "box_fanout_requests_state_check"),
        ("box_fanout_items", "state = 'pending'", "box_fanout_items_state_check"),
        ("box_fanout_items", "position = 0", "box_fanout_items_position_index"),
        ("box_fanout_items", "queue_sequence = 1", "queue_sequence"),
        ("box_fanout_items", "estimated_burn_rate_microusd = -1", "box_fanout_items_estimate_check"),
        ("box_fanout_items", "label = 'same'", "box_fanout_items_active_label_index"),
    ],
)
def test_a_plan_means_something(
    conversation: Conversation, table: str, assignment: str, constraint: str
) -> None:
    fanout.admit(conversation.id, {"type": "user", "id": "x"}, 3)

    with pytest.raises(IntegrityError, match=constraint):
        run_sql(f"update {table} set {assignment}")


def test_a_label_of_a_plan_is_free_when_its_box_is_stopped_by_raw_sql(conversation: Conversation) -> None:
    fanout.admit(conversation.id, {"type": "user", "id": "x"}, 1, labels=["web"])
    run_sql("update conversation_boxes set stopped_at = now() where label = 'web'")

    assert FanoutItem.objects.get().released_at is not None
    fanout.admit(conversation.id, {"type": "user", "id": "x"}, 1, labels=["web"])
    assert FanoutRequest.objects.count() == 2


def test_there_is_one_installation(db: None) -> None:
    Installation.objects.create(pk=1, ownership_marker="oab-test-00000000")

    with pytest.raises(IntegrityError, match="installation_single_row_check"), transaction.atomic():
        Installation.objects.create(pk=2, ownership_marker="oab-test-11111111")
