"""Everybody at once: creations, stops, extensions, passes and settlements while the provider misbehaves.

Afterwards, once everything has calmed down, the ledger and the provider agree. A failure names its seed.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from accounts.services import upsert_github_user
from base import pump
from base.clock import database_now
from base.errors import CodedError
from boxes import services
from boxes.models import Box, ReconciliationEvent
from boxes.provisioning import ProvisioningDriver
from boxes.reconciler import reconcile
from boxes.services import provider_ownership_marker
from boxes.usage.settlement import SettlementDriver
from conversations.services import ensure_conversation
from tests.fakes.provider import FakeProvider

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]
ROUNDS = 12
Act = Callable[[random.Random], object]
FAULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("create", {"drop_after": True}),
    ("create", {"drop_before": True}),
    ("create", {"status": 500}),
    ("create", {"status": 402, "code": "billing_required"}),
    ("patch", {"drop_after": True}),
    ("patch", {"status": 500}),
    ("stop", {"drop_after": True}),
    ("stop", {"drop_before": True}),
    ("stop", {"status": 500}),
    ("get", {"drop_before": True}),
    ("get", {"status": 500}),
    ("list", {"half": 0.5}),
    ("list", {"status": 500}),
    ("usage", {"status": 500}),
)


class Crowd:
    """Creators that make boxes, and followers that each act once for every creation, all at the same time.

    Each has a generator of its own from one seed. What none of them may raise is kept in `errors`.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.errors: list[BaseException] = []
        self._creators: list[threading.Thread] = []
        self._followers: list[tuple[threading.Thread, threading.Semaphore]] = []

    def create(self, act: Act) -> None:
        dice = random.Random(f"{self.seed}-creator-{len(self._creators)}")
        self._creators.append(threading.Thread(target=self._work, args=(lambda: self._make(act, dice),)))

    def follow(self, act: Act) -> None:
        dice, turns = random.Random(f"{self.seed}-{len(self._followers)}"), threading.Semaphore(0)

        def work() -> None:
            for _ in range(ROUNDS * len(self._creators)):
                turns.acquire()
                self._once(act, dice)

        self._followers.append((threading.Thread(target=self._work, args=(work,)), turns))

    def run(self) -> None:
        threads = [*self._creators, *(thread for thread, _ in self._followers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert self.errors == [], f"seed {self.seed}"

    def _make(self, act: Act, dice: random.Random) -> None:
        for _ in range(ROUNDS):
            self._once(act, dice)
            for _, turns in self._followers:
                turns.release()

    def _once(self, act: Act, dice: random.Random) -> None:
        try:
            act(dice)
        except CodedError:
            return  # a refusal is an answer
        except BaseException as error:
            self.errors.append(error)

    def _work(self, rounds: Callable[[], None]) -> None:
        try:
            rounds()
        finally:
            connection.close()


@contextmanager
def misbehaving(provider: FakeProvider, seed: int, share: float) -> Iterator[None]:
    """Of all calls, `share` meets each of the faults of its route."""
    dice, lock = random.Random(f"{seed}-provider"), threading.Lock()

    def met(_request: Any) -> bool:
        with lock:
            return dice.random() < share

    for route, fault in FAULTS:
        provider.always(route, when=met, **fault)
    provider.world.start_takes = 0.01
    yield
    provider.heal()


def create(dice: random.Random) -> None:
    services.create_box(dice.choice(conversations()))


def stop(dice: random.Random) -> None:
    box = chosen(dice) if dice.random() < 0.4 else None
    if box is not None:
        services.stop_box(box.conversation_id, str(box.pk))


def extend(dice: random.Random) -> None:
    box = chosen(dice)
    if box is not None:
        services.extend_box(box, 60)


def grow_old(dice: random.Random) -> None:
    """A box's time is up."""
    box = chosen(dice) if dice.random() < 0.4 else None
    if box is not None:
        Box.objects.filter(pk=box.pk).update(created_at=database_now() - timedelta(hours=30))


def make_due(_dice: random.Random) -> None:
    Box.objects.exclude(next_reconciliation_at=None).update(next_reconciliation_at=None)
    pump.run_once([SettlementDriver()])


def a_pass(_dice: random.Random) -> None:
    reconcile()


def provision(_dice: random.Random) -> None:
    pump.run_once([ProvisioningDriver()])


def chosen(dice: random.Random) -> Box | None:
    active = list(Box.objects.filter(stopped_at=None))
    return dice.choice(active) if active else None


def conversations() -> list[Any]:
    return [
        ensure_conversation(upsert_github_user(github_id=number, github_login=f"user-{number}")).id
        for number in (101, 102, 103)
    ]


def calm_down() -> None:
    """Let time pass for claims, leases and pauses, and everybody work until nothing is left to do."""
    gone = timedelta(minutes=10)
    for _ in range(60):
        for field in ("stop_requested_at", "lease_expires_at", "next_provision_at", "next_settlement_at"):
            Box.objects.exclude(**{field: None}).filter(usage_settled_at=None).update(
                **{field: F(field) - gone}
            )
        Box.objects.exclude(next_reconciliation_at=None).update(next_reconciliation_at=None)
        result = reconcile()
        counts = pump.run_once([ProvisioningDriver(), SettlementDriver()])
        busy = counts.claimed + result.stopped + result.ended + result.settled + result.failed
        if not busy and not Box.objects.exclude(next_provision_at=None).filter(stopped_at=None).exists():
            return
    raise AssertionError("there is always something to do")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_ledger_and_the_provider_agree_in_the_end(
    provider: FakeProvider, box_api: Callable[..., None], seed: int
) -> None:
    limits = dict.fromkeys(("default_maximum_active_boxes", "maximum_active_boxes_per_owner"), 40)
    burn = dict.fromkeys(
        ("maximum_burn_rate_per_conversation_microusd", "maximum_burn_rate_per_owner_microusd"), 10**12
    )
    box_api(**limits, **burn, maximum_active_boxes_global=100, reconcile_evidence=["get", "list"][seed % 2])
    provider_ownership_marker()
    conversations()
    crowd = Crowd(seed)
    for _ in range(3):
        crowd.create(create)
    for act in (stop, extend, grow_old, make_due, provision, a_pass, a_pass):
        crowd.follow(act)

    with misbehaving(provider, seed, 0.04):
        crowd.run()
    calm_down()

    assert Box.objects.exclude(stopped_at=None).count() > 10, "nothing happened"
    assert_agreement(provider, seed)


def assert_agreement(provider: FakeProvider, seed: int) -> None:
    active = set(Box.objects.filter(stopped_at=None).values_list("box_id", flat=True))
    up = {box.id for box in provider.existing() if box.state in ("ready", "idle", "running")}
    assert active == up, f"seed {seed}"
    assert {box.name for box in provider.existing() if box.id in up} <= {provider_ownership_marker()}
    assert all(len(made) == 1 for made in provider.world.made_by_key.values())
    assert not ReconciliationEvent.objects.filter(event_type="leak").exists(), f"seed {seed}"
    for box in Box.objects.exclude(stopped_at=None):
        assert_ended_once(box, seed)


def assert_ended_once(box: Box, seed: int) -> None:
    history = box.history.exclude(stopped_at=None)  # type: ignore[attr-defined]
    ends = set(history.values_list("stopped_at", "stop_reason", "lifetime_seconds"))
    assert ends == {(box.stopped_at, box.stop_reason, box.lifetime_seconds)}, f"seed {seed}"
    settled = set(
        history.exclude(usage_settled_at=None).values_list("usage_settled_at", "settled_cost_microusd")
    )
    assert settled == {(box.usage_settled_at, box.settled_cost_microusd)}, f"seed {seed}"
