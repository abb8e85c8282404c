"""The clerks: in whose order they work, what they give back, and how they end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from tests.waiting import eventually
from work.deep_work.ledger import Clerks

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = ("first", "second", "third")


def ask(query: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


@pytest.fixture
def clerk() -> Iterator[Clerks]:
    clerk = Clerks(1)
    yield clerk
    clerk.close()


def test_whose_turn_came_first_is_served_first_although_another_asked_before(clerk: Clerks) -> None:
    served = list[str]()
    busy, may_go_on = threading.Event(), threading.Event()
    turns, asks = {name: threading.Event() for name in NAMES}, {name: threading.Event() for name in NAMES}

    def job(name: str) -> None:
        clerk.take_turn()
        turns[name].set()
        asks[name].wait()
        clerk(lambda: served.append(name))

    with ThreadPoolExecutor(4) as threads:
        threads.submit(clerk, lambda: (busy.set(), may_go_on.wait()))
        busy.wait()
        for name in NAMES:
            threads.submit(job, name)
            turns[name].wait()
        for waiting, name in enumerate(reversed(NAMES), 1):
            asks[name].set()
            eventually(lambda waiting=waiting: clerk._asked.qsize() == waiting)
        may_go_on.set()

    assert served == list(NAMES)


def test_what_is_raised_comes_back_and_the_clerk_goes_on(clerk: Clerks) -> None:
    with pytest.raises(ZeroDivisionError):
        clerk(lambda: 1 // 0)

    assert clerk(lambda: "fine") == "fine"


@pytest.mark.parametrize("in_a_transaction", [False, True])
def test_a_clerk_that_lost_the_database_has_it_again_for_the_next(
    clerk: Clerks, in_a_transaction: bool
) -> None:
    def lose() -> None:
        with transaction.atomic() if in_a_transaction else nullcontext():
            ask("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(OperationalError):
        clerk(lose)

    assert clerk(lambda: ask("select 1")) == 1


def test_two_hundred_jobs_that_write_all_the_time_all_come_to_their_end() -> None:
    clerks, written = Clerks(4), list[int]()

    def job(number: int) -> None:
        for _ in range(5):
            clerks.take_turn()
            for _ in range(5):
                clerks(lambda: written.append(number))

    with ThreadPoolExecutor(200) as threads:
        for done in [threads.submit(job, number) for number in range(200)]:
            done.result()
    clerks.close()

    assert Counter(written) == dict.fromkeys(range(200), 25)


def test_at_the_end_everything_asked_for_is_done_and_no_thread_is_left() -> None:
    clerks = Clerks(3)
    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(clerks, lambda: threading.current_thread().name) for _ in range(40)]
        names = {answer.result() for answer in answers}

    clerks.close()

    assert names <= {"jobs-ledger-0", "jobs-ledger-1", "jobs-ledger-2"}
    assert not names & {thread.name for thread in threading.enumerate() if thread in clerks._threads}
