"""One pass against a provider over real sockets: what is asked, what is written, what it costs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from base import hooks, notify
from base.clock import database_now
from base.locks import held_by_session
from boxes import activity, services
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import plan, reconcile
from boxes.reconciler.reconcile import PASS_LOCK
from boxes.reconciler.types import Ask
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def events() -> list[tuple[str, str, bool]]:
    rows = ReconciliationEvent.objects.order_by("event_type").values_list(
        "event_type", "reason", "handled_at"
    )
    return [(kind, reason, handled is not None) for kind, reason, handled in rows]


def test_a_healthy_fleet_is_observed_and_left_alone(
    pair: Pair, provider: FakeProvider, evidence: str
) -> None:
    boxes = [pair(f"bx_2222222{digit}", row={"label": f"box-{digit}"}) for digit in "2345"]

    result = reconcile()

    assert (result.boxes, result.provider_boxes, result.observed, result.incomplete) == (4, 4, 4, False)
    assert all(again(box).last_reconciled_at for box in boxes)
    assert provider.count("get") == (4 if evidence == "get" else 0)
    assert provider.count("stop") == 0


def test_a_box_whose_time_is_up_is_stopped_after_one_look(
    pair: Pair, provider: FakeProvider, evidence: str
) -> None:
    box = pair(age=3601)

    assert reconcile().stopped == 1

    row = again(box)
    assert (row.state, row.stop_reason, row.stop_requested_at) == ("archiving", "ttl_expired", None)
    assert (row.usage_settled_at, row.settled_cost_microusd) == (None, None)
    assert [call.name for call in provider.calls()] == ["list", "get", "stop"]
    assert provider.billing() == []


def test_an_idle_box_is_stopped(pair: Pair, provider: FakeProvider, evidence: str) -> None:
    box = pair(age=1801)

    reconcile()

    assert again(box).stop_reason == "idle_timeout"


def test_a_command_is_activity(pair: Pair, provider: FakeProvider, evidence: str) -> None:
    box = pair(age=1801)
    provider.on_command(lambda *_: "")
    services.run_command(box.conversation_id, str(box.pk), "true")

    reconcile()

    assert again(box).stopped_at is None


def test_looking_at_a_box_is_no_activity_and_revives_nothing(
    pair: Pair, provider: FakeProvider, evidence: str, api_of: Any, owner: Any
) -> None:
    box, client = pair(age=1801), api_of(owner)
    for _ in range(5):
        assert client.get(f"/api/v1/boxes/{box.pk}").status_code == 200
        assert client.get("/api/v1/boxes").status_code == 200
    reconcile()
    stopped = again(box)
    for _ in range(5):
        client.get(f"/api/v1/boxes/{box.pk}")
    reconcile()

    assert (again(box).stopped_at, again(box).lifetime_seconds) == (
        stopped.stopped_at,
        stopped.lifetime_seconds,
    )
    assert provider.count("resume") == 0
    assert provider.billing() == []


def test_while_nobody_can_say_what_is_alive_nothing_is_idle(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(ids: Any) -> Any:
        raise RuntimeError("cannot say")

    box = pair(age=1801)
    monkeypatch.setattr(hooks.box_activity, "_callables", [broken, lambda ids: {}])
    reconcile()
    assert again(box).stopped_at is None
    assert activity.idle_since([box]) == {box.pk: None}

    Box.objects.update(created_at=database_now() - timedelta(seconds=3601))
    reconcile()
    assert again(box).stop_reason == "ttl_expired"


def test_a_box_that_the_provider_ended_is_ended_without_a_stop(
    pair: Pair, provider: FakeProvider, evidence: str
) -> None:
    box = pair(age=100, state="archived", extra={"costMicrousd": 777})

    reconcile()

    row = again(box)
    assert (row.stop_reason, row.settled_cost_microusd) == ("provider_terminal", 777)
    assert row.lifetime_seconds == pytest.approx(100, abs=30)
    assert provider.count("stop") == 0


def test_a_box_under_another_name_is_never_stopped_and_always_shown(
    pair: Pair, provider: FakeProvider, evidence: str
) -> None:
    box = pair(age=7200, name="renamed")

    reconcile()
    reconcile()

    assert again(box).stopped_at is None
    assert provider.count("stop") == 0
    assert events() == [("marker_missing", "not_stopped_under_another_name", False)]
    event = ReconciliationEvent.objects.get()
    assert event.box == box
    assert event.last_seen_at is not None
    assert event.last_seen_at > event.observed_at


def test_an_unknown_state_is_stored_as_provisioning_and_shown(
    pair: Pair, provider: FakeProvider, evidence: str
) -> None:
    box = pair(extra={"state": "hibernating"})

    reconcile()

    assert (again(box).state, again(box).stopped_at) == ("provisioning", None)
    assert events() == [("unknown_state", "state_hibernating", False)]


@pytest.mark.parametrize("box_id", ["box 1", "a/b", "../x", "bx\u202e1", "%2e"])
def test_an_id_that_cannot_be_asked_about_is_no_missing_box(
    make_row: Pair, provider: FakeProvider, evidence: str, box_id: str
) -> None:
    box = make_row(box_id, age=7200)

    reconcile()

    row = again(box)
    assert (row.stopped_at, row.reconciliation_error, row.reconciliation_failures) == (
        None,
        "box_malformed_id",
        1,
    )
    assert events() == [("malformed_id", "id_cannot_be_asked_about", False)]
    assert [call.name for call in provider.calls()] == ["list"]


@pytest.mark.parametrize("box_id", ["sbx-7", "01J9ZX8", "vm_1.2~3", "x" * 190])
def test_other_forms_of_ids_are_as_good(
    pair: Pair, provider: FakeProvider, evidence: str, box_id: str
) -> None:
    healthy, expired = pair(box_id), pair("other" + box_id[:100], age=3601, row={"label": "old"})

    reconcile()

    assert again(healthy).stopped_at is None
    assert again(expired).stop_reason == "ttl_expired"


def test_what_was_settled_is_never_read_again(make_row: Pair, provider: FakeProvider, evidence: str) -> None:
    now = database_now()
    for number in range(3):
        make_row(f"bx_old{number}", label=f"old-{number}", stopped_at=now, usage_settled_at=now)

    assert reconcile().boxes == 0
    assert provider.count() == 1


def test_a_box_of_ours_without_our_name_is_named_by_the_worker(
    pair: Pair, provider: FakeProvider, evidence: str
) -> None:
    box = pair(name="Box 1", row={"create_key": "key-1"})

    reconcile()

    assert again(box).next_provision_at is not None
    assert events() == []


def test_a_name_that_is_there_is_noted_without_a_request(
    pair: Pair, provider: FakeProvider, evidence: str
) -> None:
    box = pair(row={"create_key": "key-1"})

    reconcile()

    assert again(box).marked_at is not None
    assert provider.count("patch") == 0


# concurrency with others


def test_a_second_pass_at_the_same_time_is_a_no_op_that_says_so(pair: Pair, provider: FakeProvider) -> None:
    pair(age=3601)
    with notify.own_connection() as link, held_by_session(link, PASS_LOCK) as held:
        assert held
        result = reconcile()

    assert (result.skipped, result.boxes, provider.count()) == (True, 0, 0)
    assert reconcile().stopped == 1


# cost


@pytest.mark.parametrize("boxes", [3, 40])
def test_a_pass_without_actions_has_a_fixed_number_of_statements(
    pair: Pair, provider: FakeProvider, evidence: str, boxes: int
) -> None:
    for number in range(boxes):
        pair(f"bx_{number:08}", row={"label": f"box-{number}"})
    provider.add_box("bx_22222224", name="theirs")
    reconcile()

    with CaptureQueriesContext(connection) as queries:
        reconcile()

    assert len(queries) <= 20, [query["sql"][:90] for query in queries]


def test_what_is_asked_for_is_decided_only_after_it_was_seen(pair: Pair) -> None:
    pair(age=3601)

    assert not any(isinstance(entry.action, Ask) for entry in plan().decisions)
