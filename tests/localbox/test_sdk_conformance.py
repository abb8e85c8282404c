"""The vendor's own SDK drives every served call, against a real server process, in each sandbox: the account, creating and listing boxes, webhooks."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.box_helpers import stream_events
from ascii_box_sdk.exceptions import (
    BadRequestException,
    ConflictException,
    NotFoundException,
    UnauthorizedException,
)
from ascii_box_sdk.models.box import Box
from ascii_box_sdk.models.create_box_request import CreateBoxRequest
from ascii_box_sdk.models.update_box_request import UpdateBoxRequest
from ascii_box_sdk.models.webhook_create_request import WebhookCreateRequest
from ascii_box_sdk.models.webhook_update_request import WebhookUpdateRequest

from tests.localbox.client import new_key, ready_box, sdk, wait_ready
from tests.localbox.conformance import MISSING, UP, refusal, refused_code, remove
from tests.localbox.server import LocalboxServer

# 1 and 2: the account


def test_it_says_who_the_account_is(api: BoxApi) -> None:
    answer = api.me()

    assert answer.type == "user.info"
    assert answer.user.login == "localbox"


def test_it_says_what_may_still_be_started(api: BoxApi) -> None:
    answer = api.limits()

    assert answer.type == "limits.info"
    assert 0 <= answer.active_boxes <= answer.max_active_boxes
    assert answer.billing_status
    assert answer.can_start


# 3 and 4: refusals


def test_it_refuses_a_wrong_key_with_a_complete_envelope(each_server: LocalboxServer) -> None:
    error = refusal(UnauthorizedException, lambda: sdk(each_server, key="box_not_this_one").boxes())

    assert (error.code, error.status, error.type, error.ok) == ("unauthorized", 401, "box.error", False)
    assert (error.error.code, error.error.status) == ("unauthorized", 401)
    assert error.request_id.startswith("req_")


def test_it_knows_no_box_that_was_never_made(api: BoxApi) -> None:
    assert refusal(NotFoundException, lambda: api.get(MISSING)).code == "not_found"


# 5 to 8: create, and its key


def test_a_create_answers_before_the_box_is_up(api: BoxApi) -> None:
    request = CreateBoxRequest(ttl_seconds=900, no_env=True, env={"GREETING": "hello"})

    answer = api.create(new_key(), create_box_request=request)

    assert (answer.type, answer.status, answer.ttl_seconds) == ("box.created", "provisioning", 900)
    assert answer.box.state == "provisioning"
    remove(api, answer.box.id)


def test_a_repeated_create_is_the_same_box_before_and_after_it_is_up(api: BoxApi) -> None:
    key, request = new_key(), CreateBoxRequest(ttl_seconds=900, no_env=True)
    first, again = (api.create(key, create_box_request=request).box for _ in range(2))

    up = wait_ready(api, first.id)
    later = api.create(key, create_box_request=request)

    assert first.id == again.id == later.box.id
    assert later.status == "provisioning"
    assert (up.setup_status, up.environment) == (None, None)
    assert timedelta(0) < up.archive_after - up.created_at <= timedelta(seconds=905)
    remove(api, first.id)


def test_a_key_is_refused_with_another_body(api: BoxApi) -> None:
    key = new_key()
    made = api.create(key, create_box_request=CreateBoxRequest(ttl_seconds=900)).box

    error = refusal(
        ConflictException, lambda: api.create(key, create_box_request=CreateBoxRequest(ttl_seconds=901))
    )

    assert error.code == "idempotency_key_reused"
    remove(api, made.id)


def test_creates_without_a_key_make_a_box_each(api: BoxApi) -> None:
    first, second = (api.create(create_box_request=CreateBoxRequest(ttl_seconds=900)).box for _ in range(2))

    assert first.id != second.id
    remove(api, first.id)
    remove(api, second.id)


@pytest.mark.parametrize(
    ("size", "vcpu", "memory", "multiplier"), [("small", 2, 4, 0.5), ("large", 8, 16, 2)]
)
def test_a_size_sets_what_the_box_says_of_itself(
    api: BoxApi, size: str, vcpu: int, memory: int, multiplier: float
) -> None:
    made = api.create(new_key(), create_box_request=CreateBoxRequest(type=size, ttl_seconds=900)).box

    assert (made.type, made.vcpu, made.memory_gb, made.billing_multiplier) == (size, vcpu, memory, multiplier)
    remove(api, made.id)


# 9 to 11: update


def test_a_new_name_shows_everywhere(api: BoxApi, box: Box) -> None:
    changed = api.update(box.id, UpdateBoxRequest(name="lathe")).box

    rows = [row for row in api.boxes().boxes if row.id == box.id]
    assert changed.name == "lathe"
    assert [(row.name, row.state in UP) for row in rows] == [("lathe", True)]


def test_a_new_ttl_moves_the_automatic_stop(api: BoxApi, box: Box) -> None:
    later = api.update(box.id, UpdateBoxRequest(ttl_seconds=1800)).box
    never = api.update(box.id, UpdateBoxRequest(ttl_seconds=None)).box

    assert later.archive_after > box.archive_after
    assert never.archive_after is None


def test_an_update_of_nothing_is_refused(api: BoxApi, box: Box) -> None:
    assert refusal(BadRequestException, lambda: api.update(box.id, UpdateBoxRequest())).code == "no_changes"


def test_a_subdomain_belongs_to_one_box(api: BoxApi, box: Box) -> None:
    label, other = f"lathe-{new_key()}", ready_box(api)

    assert api.update(box.id, UpdateBoxRequest(subdomain=label)).box.subdomain == label
    taken = refused_code(ConflictException, lambda: api.update(other.id, UpdateBoxRequest(subdomain=label)))
    assert taken == "subdomain_taken"
    remove(api, other.id)


# 24 and 25: listing


@pytest.mark.parametrize("sort", ["asc", "desc"])
def test_pages_hold_every_box_once_in_order_of_creation(api: BoxApi, sort: str) -> None:
    made = [api.create(new_key()).box.id for _ in range(3)]

    seen = [row.id for row in every_row(api, sort) if row.id in made]

    assert seen == (made if sort == "asc" else made[::-1])
    for box_id in made:
        remove(api, box_id)


def every_row(api: BoxApi, sort: str) -> Iterator[Box]:
    """All boxes, one a page."""
    cursor, more = None, True
    while more:
        page = api.boxes(limit=1, sort=sort, cursor=cursor)
        yield from page.boxes
        cursor, more = page.page_info.next_cursor, page.page_info.has_more
        assert more == (cursor is not None)


def test_a_listing_is_filtered_by_state(api: BoxApi, box: Box) -> None:
    up = {row.id for row in api.boxes(state="ready,idle,running").boxes}
    down = {row.id for row in api.boxes(state="archived,error").boxes}

    assert box.id in up
    assert box.id not in down


# 26: events


def test_events_of_a_box_without_an_agent_are_none(api: BoxApi, box: Box) -> None:
    cursor = base64.urlsafe_b64encode(b"1790000000000:evt-1").decode().rstrip("=")

    first = api.events(box.id, sort="asc")
    later = api.events(box.id, sort="asc", cursor=cursor)

    assert (first.type, first.id, first.events, later.events) == ("events.list", box.id, [], [])
    with pytest.raises(TimeoutError):
        next(stream_events(api, box.id, timeout_seconds=0, include_existing=True))


# 33: webhooks


def test_a_webhook_lives_from_create_to_delete(api: BoxApi) -> None:
    request = WebhookCreateRequest(url="https://example.com/hook", events=["box.ready"], name="first")

    created = api.create_webhook(request)
    listed = api.list_webhooks().webhooks
    changed = api.update_webhook(
        created.webhook.id, WebhookUpdateRequest(events=["box.error", "box.archived"])
    )
    rotated = api.rotate_webhook_signing_secret(created.webhook.id)
    read = api.get_webhook(created.webhook.id).webhook
    gone = api.delete_webhook(created.webhook.id)

    assert re.fullmatch(r"whsec_[a-f0-9]{64}", created.secret)
    assert [hook.id for hook in listed] == [created.webhook.id]
    assert [event.value for event in changed.webhook.events] == ["box.error", "box.archived"]
    assert rotated.secret != created.secret
    assert (read.name, read.url) == ("first", "https://example.com/hook")
    assert gone.id == created.webhook.id
    assert refusal(NotFoundException, lambda: api.get_webhook(created.webhook.id)).code == "not_found"


# what is not served


def test_what_is_not_served_says_so(api: BoxApi, box: Box) -> None:
    calls: list[Callable[[], Any]] = [
        api.environments,
        api.api_keys,
        api.list_named_snapshots,
        api.list_snapshots,
        lambda: api.interrupt(box.id),
        lambda: api.get_latest_box_snapshot(box.id),
        lambda: api.conversations(box.id),
    ]

    assert {refused_code(NotFoundException, call) for call in calls} == {"not_supported"}
    assert api.get(box.id).box.state in UP


def test_a_named_snapshot_to_start_from_is_unknown(api: BoxApi) -> None:
    request = CreateBoxRequest(var_from="golden")

    assert (
        refused_code(NotFoundException, lambda: api.create(create_box_request=request))
        == "snapshot_not_found"
    )
