"""A slot is due by the database's clock, and says how the pass went."""

from __future__ import annotations

import pytest
from django.db import connection

from base.errors import CodedError
from base.pump import Holder
from boxes import slots
from boxes.models import ScheduleSlot

pytestmark = pytest.mark.django_db


def run(work=lambda: {"boxes": 1}):
    return slots.run_if_due("tests", Holder(), work)


def fail():
    raise CodedError("box_unreachable")


def due_now() -> None:
    with connection.cursor() as cursor:
        cursor.execute("update schedule_slots set next_at = clock_timestamp()")


def test_it_is_first_due_after_the_initial_delay():
    slot = slots.ensure("tests", interval_ms=60_000)

    assert slot.initial_delay_ms == 60_000
    assert run() is None
    assert 59 < slots.seconds_until_due("tests") <= 60


def test_a_good_pass_moves_it_by_the_interval():
    slots.ensure("tests", interval_ms=60_000, initial_delay_ms=0)

    assert run() == {"boxes": 1}
    assert run() is None
    assert ScheduleSlot.objects.get().outcome == {"boxes": 1}
    assert 59 < slots.seconds_until_due("tests") <= 60


def test_a_failed_pass_is_tried_again_ever_later_until_a_good_one():
    slots.ensure("tests", interval_ms=60_000, initial_delay_ms=0)
    waits = []
    for _ in range(8):
        due_now()
        assert run(fail) == {"error": "box_unreachable"}
        waits.append(round(slots.seconds_until_due("tests")))
    due_now()
    run()

    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]
    assert ScheduleSlot.objects.get().failures == 0


def test_an_unexpected_error_is_raised_and_the_slot_put_back():
    slots.ensure("tests", interval_ms=60_000, initial_delay_ms=0)

    with pytest.raises(ZeroDivisionError):
        run(lambda: {"boxes": 1 // 0})
    slot = ScheduleSlot.objects.get()
    assert (slot.failures, slot.outcome, slot.lease_expires_at) == (1, {"error": "ZeroDivisionError"}, None)


def test_a_shorter_interval_takes_effect_at_once():
    slots.ensure("tests", interval_ms=3_600_000)
    slots.ensure("tests", interval_ms=10_000)

    assert slots.seconds_until_due("tests") <= 10


def test_ensuring_again_changes_nothing():
    before = slots.ensure("tests", interval_ms=60_000)

    assert slots.ensure("tests", interval_ms=60_000).next_at == before.next_at


def test_there_is_no_time_for_a_slot_that_is_not_there():
    assert slots.seconds_until_due("nothing") is None
    assert run() is None


def test_a_slot_that_ran_before_is_brought_forward():
    slots.ensure("tests", interval_ms=60_000, initial_delay_ms=0)
    run()

    assert slots.bring_forward("tests", within_ms=2_000)
    assert slots.seconds_until_due("tests") <= 2
    assert not slots.bring_forward("tests", within_ms=2_000)


def test_a_slot_that_never_ran_keeps_its_initial_delay():
    slots.ensure("tests", interval_ms=60_000)

    assert not slots.bring_forward("tests", within_ms=2_000)
    assert slots.seconds_until_due("tests") > 50


def test_a_slot_whose_pass_failed_is_not_brought_forward():
    slots.ensure("tests", interval_ms=60_000, initial_delay_ms=0)
    run(fail)

    assert not slots.bring_forward("tests", within_ms=2_000)


def test_a_slot_whose_pass_runs_is_not_brought_forward():
    slots.ensure("tests", interval_ms=60_000, initial_delay_ms=0)
    run()
    due_now()
    slots.claim("tests", Holder())
    with connection.cursor() as cursor:
        cursor.execute("update schedule_slots set next_at = clock_timestamp() + interval '60 s'")

    assert not slots.bring_forward("tests", within_ms=2_000)
