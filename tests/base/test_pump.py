"""The pump performs what drivers claim, settles in batches, and survives bad rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import OperationalError

from base import notify
from base.pump import Counts, Holder, Outcome, Pump, run_once, settle


class Numbers:
    """A driver of numbers: performing doubles them; 13 cannot be performed, 7 cannot be settled."""

    name, slots = "numbers", 4

    def __init__(self, *due: int) -> None:
        self.due, self.settled, self.batches, self.threads = list(due), {}, [], set()

    def claim(self, holder: Holder, limit: int) -> Sequence[int]:
        taken, self.due = self.due[:limit], self.due[limit:]
        return taken

    def perform(self, task: int) -> int:
        self.threads.add(threading.current_thread().name)
        if task == 13:
            raise ValueError(task)
        return task * 2

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        self.batches.append(len(outcomes))
        if any(outcome.task == 7 for outcome in outcomes):
            raise ArithmeticError
        self.settled |= {outcome.task: outcome.answer or repr(outcome.error) for outcome in outcomes}

    def seconds_until_due(self) -> float | None:
        return 0.0 if self.due else None


def test_one_round_settles_everything_that_was_due_in_one_batch():
    driver = Numbers(1, 2, 3)

    counts = run_once([driver])

    assert driver.settled == {1: 2, 2: 4, 3: 6}
    assert driver.batches == [3]
    assert counts == Counts(claimed=3, settled=3)


def test_it_is_performed_in_threads_of_the_driver():
    driver = Numbers(1, 2)

    run_once([driver])

    assert all(name.startswith("numbers") for name in driver.threads)


def test_an_exception_is_an_outcome():
    driver = Numbers(13)

    run_once([driver])

    assert driver.settled == {13: "ValueError(13)"}


def test_a_row_that_cannot_be_settled_costs_only_itself():
    driver = Numbers(1, 7, 3)

    counts = run_once([driver])

    assert driver.settled == {1: 2, 3: 6}
    assert (counts.settled, counts.failed) == (2, 1)


def test_an_error_of_the_connection_is_raised():
    class Gone(Numbers):
        def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
            raise OperationalError

    with pytest.raises(OperationalError):
        settle(Gone(), Holder(), [Outcome(1), Outcome(2)], Counts())


@pytest.fixture
def link(transactional_db):
    link = notify.own_connection()
    notify.listen(link, [notify.DUE])
    yield link
    link.close()


def drive(pump: Pump, until: Any) -> None:
    for _ in range(10_000):
        if until():
            return
        if not pump.step():
            pump.wait()
    raise AssertionError("the pump did not come to an end")


def test_the_endless_form_keeps_within_the_slots_and_settles_all(link):
    driver = Numbers(*range(20, 60))
    pump = Pump([driver], Holder(1), link)
    most = 0

    def watch() -> bool:
        nonlocal most
        most = max(most, pump.in_flight)
        return len(driver.settled) == 40

    drive(pump, watch)

    assert most <= driver.slots
    assert pump.drain(1) == 0


def test_a_notification_ends_the_wait(link):
    pump = Pump([Numbers()], Holder(1), link)
    pump._sleep_seconds = lambda: 60.0
    notify.notify(notify.DUE, "numbers")

    pump.wait()  # returns, or the test's time limit ends it


def test_a_notification_asks_the_driver_that_it_names_and_no_other(link):
    class Counted(Numbers):
        def claim(self, holder: Holder, limit: int) -> Sequence[int]:
            self.asked += 1
            return super().claim(holder, limit)

    mine, other = Counted(), Counted()
    mine.asked = other.asked = 0
    other.name = "others"
    pump = Pump([mine, other], Holder(1), link)
    pump.step()

    notify.notify(notify.DUE, "numbers")
    pump.wait()
    pump.step()
    assert (mine.asked, other.asked) == (2, 1)
    notify.notify(notify.DUE, "of nobody here")
    pump.wait()
    pump.step()
    assert (mine.asked, other.asked) == (3, 2)


def test_draining_does_not_wait_for_what_only_looks_and_gives_it_back(link):
    release, given = threading.Event(), []

    class Looking(Numbers):
        def perform(self, task: int) -> int:
            return task if task == 1 else int(release.wait(30))

        def only_looks(self, task: int) -> bool:
            return task != 1

        def give_back(self, tasks: list[int]) -> None:
            given.extend(tasks)

    driver = Looking(1, 2, 3)
    pump = Pump([driver], Holder(1), link)
    pump.step()

    assert pump.drain(30) == 2
    assert (list(driver.settled), sorted(given)) == ([1], [2, 3])
    release.set()


def test_draining_settles_what_is_in_flight_and_starts_nothing(link):
    release = threading.Event()

    class Slow(Numbers):
        def perform(self, task: int) -> int:
            release.wait(30)
            return task

    driver = Slow(1, 2, 3, 4, 5)
    pump = Pump([driver], Holder(1), link)
    pump.step()
    release.set()

    assert pump.drain(30) == 0
    assert set(driver.settled) == {1, 2, 3, 4}
    assert driver.due == [5]
