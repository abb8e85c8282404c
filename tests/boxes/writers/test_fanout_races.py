"""Plans, promotions, refusals and stops at the same moment: limits hold, and every admitted item has its row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts.models import User
from accounts.services import upsert_github_user
from base.pump import Holder
from boxes import fanout, services
from boxes.errors import ProviderCode, Refused
from boxes.models import Box, FanoutItem, FanoutRequest
from boxes.provisioning import ProvisioningDriver
from boxes.states import ItemState
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.boxes.writers.driving import drive, pass_time
from tests.boxes.writers.test_admission_races import at_once
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db(transaction=True)
PRINCIPAL = {"type": "user", "id": "owner"}


@pytest.fixture
def conversations(db: None) -> list[Conversation]:
    users = [upsert_github_user(github_id=50 + n, github_login=f"racer-{n}") for n in range(4)]
    return [ensure_conversation(user) for user in users]


def assert_consistent(limit: int) -> None:
    """No more boxes than places; an admitted item has its row, a queued one has none; the counters are true."""
    assert Box.objects.filter(stopped_at=None).count() <= limit
    assert not FanoutItem.objects.filter(state=ItemState.ADMITTED, box=None).exists()
    assert not FanoutItem.objects.filter(state=ItemState.QUEUED).exclude(box=None).exists()
    for request in FanoutRequest.objects.all():
        assert request.admitted_count == request.items.filter(state=ItemState.ADMITTED).count()
        assert request.queued_count == request.items.filter(state=ItemState.QUEUED).count()


def test_plans_at_once_share_the_places_exactly(
    conversations: list[Conversation], box_api: Callable[..., None]
) -> None:
    box_api(maximum_active_boxes_global=9, default_maximum_active_boxes=5, maximum_active_boxes_per_owner=5)

    at_once([lambda each=each: fanout.admit(each.id, PRINCIPAL, 3) for each in conversations * 2])

    assert Box.objects.count() == 9
    assert len(set(FanoutItem.objects.values_list("queue_sequence", flat=True))) == 24
    assert_consistent(9)


def test_promotions_at_once_admit_each_item_once(
    conversations: list[Conversation], box_api: Callable[..., None]
) -> None:
    box_api(maximum_active_boxes_global=0)
    for each in conversations:
        fanout.admit(each.id, PRINCIPAL, 3)
    box_api(maximum_active_boxes_global=7, default_maximum_active_boxes=3)

    promoted = at_once([fanout.promote_queued] * 6)

    assert sum(promoted) == Box.objects.count() == 7
    assert_consistent(7)


def test_refusals_stops_promotions_and_cancellations_at_once_leave_nothing_between(
    conversations: list[Conversation], owner: User, provider: FakeProvider, box_api: Callable[..., None]
) -> None:
    box_api(maximum_active_boxes_global=8, default_maximum_active_boxes=4)
    requests = [fanout.admit(each.id, PRINCIPAL, 4) for each in conversations]
    tasks = ProvisioningDriver().claim(Holder(), 2)
    refused = Refused(ProviderCode.BILLING_REQUIRED)

    outcomes = at_once(
        [
            *[lambda task=task: fanout.put_back(task.pk, refused) for task in tasks],
            *[lambda each=each: services.stop_box(each.id, "box-1") for each in conversations],
            *[fanout.promote_queued] * 3,
            lambda: fanout.cancel(requests[3]),
        ]
    )

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert_consistent(8)
    FanoutItem.objects.update(next_attempt_at=None)
    fanout.promote_queued()
    pass_time(61)  # the lease of a task that nobody carried out
    drive()
    assert len(provider.billing()) == Box.objects.filter(stopped_at=None).count()
    assert_consistent(8)
