"""The clerks: in whose order they work, what they give back, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.installation import eventually
from work.deep_work.ledger import Clerks

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = ("first", "second", "third")


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


def test_at_the_end_everything_asked_for_is_done_and_no_thread_is_left() -> None:
    clerks = Clerks(3)
    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(clerks, lambda: threading.current_thread().name) for _ in range(40)]
        names = {answer.result() for answer in answers}

    clerks.close()

    assert names <= {"jobs-ledger-0", "jobs-ledger-1", "jobs-ledger-2"}
    assert not names & {thread.name for thread in threading.enumerate() if thread in clerks._threads}
