"""The client against a provider that is late, broken or gone, over real sockets."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from boxes.client import BoxClient
from boxes.conf import BoxApi
from boxes.errors import ProviderError, Refused, RetryLater, Unknown
from tests.fakes.provider import FakeProvider


def test_a_lost_answer_to_a_create_is_found_again_by_the_same_key(
    fake: FakeProvider, live: BoxClient
) -> None:
    fake.next("POST /boxes", drop_after=True)
    with pytest.raises(Unknown):
        live.create("key-1", ttl_seconds=900)
    box = live.create("key-1", ttl_seconds=900)

    assert (fake.count("create"), fake.boxes_of_key("key-1"), len(fake.billing())) == (2, [box.id], 1)


def test_a_create_that_is_answered_too_late_is_unknown(fake: FakeProvider, live: BoxClient) -> None:
    with fake.hold("create", after=True), pytest.raises(Unknown) as caught:
        live.create("key-1", ttl_seconds=900, timeout_seconds=0.3)

    assert (caught.value.code, len(fake.existing())) == ("box_unreachable", 1)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 503, "code": "out_of_capacity"}, Refused),
        ({"status": 429, "code": "limit_reached", "retry_after": 60}, Refused),
        ({"status": 500, "after": True}, Unknown),
        ({"html": True, "after": True}, Unknown),
        ({"empty": True, "after": True}, Unknown),
        ({"half": 0.3}, Unknown),
        ({"drop_before": True, "reset": True}, Unknown),
        ({"edit": lambda body: {**body, "box": {**body["box"], "id": None}}}, Unknown),
        ({"status": 409, "code": "idempotency_in_progress"}, Unknown),
    ],
)
def test_a_create_is_refused_only_where_nothing_exists(
    fake: FakeProvider, live: BoxClient, fault: dict[str, Any], kind: type[ProviderError]
) -> None:
    fake.next("create", **fault)
    with pytest.raises(ProviderError) as caught:
        live.create("key-1", ttl_seconds=900)

    assert (type(caught.value), fake.count("create")) == (kind, 1)
    assert kind is Unknown or fake.existing() == []


@pytest.mark.parametrize("head", [False, True])
def test_a_dripping_answer_is_cut_at_the_deadline(fake: FakeProvider, live: BoxClient, head: bool) -> None:
    box = fake.add_box()
    fake.next("get", drip=1.0, drip_head=head)
    with pytest.raises(Unknown) as caught:
        live.get(box.id, timeout_seconds=0.4)

    assert (caught.value.code, caught.value.log_detail) == ("box_unreachable", "DeadlineExceeded")
    assert live.get(box.id).is_up


def test_a_huge_answer_is_cut_and_not_asked_for_again(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    fake.next("get", huge=10_000_000)
    with pytest.raises(Unknown) as caught:
        live.get(box.id, tries=3)

    assert (caught.value.code, fake.count("get")) == ("box_response_invalid", 1)


def test_a_redirect_is_not_followed(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    fake.next("stop", redirect=f"{fake.url}/boxes/{box.id}/stop")
    with pytest.raises(Unknown):
        live.stop(box.id)

    assert (fake.count("stop"), fake.billing()) == (1, [box])


def test_an_answer_that_comes_twice_is_not_taken_for_the_next_one(
    fake: FakeProvider, live: BoxClient
) -> None:
    fake.add_box("bx_one", name="one")
    fake.add_box("bx_two", name="two")
    fake.next("get", answer_twice=True)

    assert [live.get(box_id).name for box_id in ("bx_one", "bx_two", "bx_one")] == ["one", "two", "one"]


def test_a_restarted_provider_costs_one_try(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    live.get(box.id)
    fake.drop_connections()

    assert live.get(box.id, tries=3).is_up


def test_a_stop_that_comes_undone_is_seen(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box(undo_stop_after=60)
    accepted = live.stop(box.id)
    fake.clock.advance(61)

    assert (accepted.state, live.get(box.id).state) == ("archiving", "idle")


def test_a_stop_that_is_forbidden_is_refused_each_time(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box(refuse_stop="forbidden")
    for _ in range(3):
        with pytest.raises(Refused) as caught:
            live.stop(box.id)

    assert (caught.value.code, caught.value.gone_code, box.stops) == ("box_billing_required", None, 3)


def test_a_date_as_pause_is_judged_by_the_providers_clock(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    fake.clock.freeze()
    fake.clock.advance(86_400 * 30)
    date = fake.clock.now().strftime("%a, %d %b %Y %H:%M:%S GMT")
    fake.next("get", status=429, retry_after=date)
    with pytest.raises(RetryLater) as caught:
        live.get(box.id, tries=3)

    assert caught.value.retry_after_seconds == 0
    assert fake.count("get") == 1


def test_usage_is_readable_until_the_box_is_deleted(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box(age=1000)
    live.stop(box.id)
    usage = live.usage(box.id)
    deletions = [live.delete(box.id).was_gone, live.delete(box.id).was_gone]

    assert (usage.seconds, usage.cost_microusd, usage.running) == (1000, 10_000, False)
    assert deletions == [False, True]
    with pytest.raises(Refused) as caught:
        live.usage(box.id)
    assert caught.value.code == "box_not_found"


def test_a_wrong_key_is_told_apart_from_everything_else(fake: FakeProvider) -> None:
    stranger = BoxClient(BoxApi(**{**fake.settings, "api_key": "wrong"}))
    with pytest.raises(Refused) as caught:
        stranger.list_all()

    assert caught.value.code == "box_unauthorized"


def test_both_dialects_lead_to_the_same_boxes(fake_boat: FakeProvider) -> None:
    boat = BoxClient(BoxApi(**fake_boat.settings))
    box = boat.create("key-1", ttl_seconds=900)
    boat.patch(box.id, name="marker", ttl_seconds=1800)
    fake_boat.on_command(lambda _box, _command: (3, "out"))
    result = boat.command(box.id, "true", 5)
    stopped = boat.stop(box.id)

    assert (boat.list_all(states=None).boxes[0].name, result.exit_status) == ("marker", 3)
    assert (stopped.id, stopped.state, boat.usage(box.id).running) == (box.id, "archiving", False)
    assert {call.request.path.split("/")[3] for call in fake_boat.calls()} == {"sandboxes"}


def test_one_client_serves_many_threads(fake: FakeProvider, live: BoxClient) -> None:
    boxes = fake.add_boxes(200)
    right: list[bool] = []

    def look(part: int) -> None:
        for box in boxes[part::16]:
            right.append(live.get(box.id, timeout_seconds=30).id == box.id)

    threads = [threading.Thread(target=look, args=(part,)) for part in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(right), all(right)) == (200, True)
