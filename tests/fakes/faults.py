"""What a test can make go wrong with a call, and the script that says with which one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.wire import Request


class Hold:
    """Where calls wait until the test lets them go on."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        self._go_on = threading.Event()

    def release(self) -> None:
        """Let every call that waits here, and every later one, go on."""
        self._go_on.set()

    def wait_until_arrived(self, number: int = 1, seconds: float = 30.0) -> None:
        """Wait for so many more calls. Raises AssertionError if they do not come."""
        for _ in range(number):
            assert self.arrived.acquire(timeout=seconds), "no call arrived"

    def pass_through(self, ending: threading.Event) -> None:
        self.arrived.release()
        while not self._go_on.wait(0.02):
            if ending.is_set():
                return

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.release()


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong. Everything left out goes right; what is given can be combined.

    Which call: `page` (of a listing, from 1), `box` (an id), `when` (any test of the request); `times` None is always.

    Before it acts: `wait` seconds, `hold`, `drop_before` (close without acting), or answer without acting: `status`,
    `code` (with the API's error body), `json`, `body`, `html`, `empty`, `redirect`, `huge` (a body of so many bytes).
    With `after=True` the same answer is given after it acted.

    After it acted: `late` seconds, `hold_after`, `drop_after` (close without answering), `twice` (it acts a second time
    before it answers).

    The answer: `edit` changes its JSON, `cursor` sets the next cursor of a page (with more promised), `headers` are
    added, `retry_after` is a header of seconds or a date, `cut_json` sends the first part of the text as a whole answer
    (0 to 1), `half` announces all of it, sends so much, and closes, `drip` sends byte by byte with so many seconds
    between (`drip_head` the head, too), `answer_twice` sends it twice. `reset` closes with a reset.
    """

    route: str
    times: int | None = 1
    page: int | None = None
    box: str | None = None
    when: Callable[[Request], bool] | None = None
    wait: float = 0.0
    hold: Hold | None = None
    drop_before: bool = False
    status: int | None = None
    code: str | None = None
    json: Any = None
    body: bytes | str | None = None
    html: bool = False
    empty: bool = False
    redirect: str | None = None
    huge: int | None = None
    after: bool = False
    late: float = 0.0
    hold_after: Hold | None = None
    drop_after: bool = False
    twice: bool = False
    edit: Callable[[Any], Any] | None = None
    cursor: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: int | str | None = None
    cut_json: float | None = None
    half: float | None = None
    drip: float | None = None
    drip_head: bool = False
    answer_twice: bool = False
    reset: bool = False

    @property
    def answers_itself(self) -> bool:
        """Whether the answer is the fault's own and not the API's."""
        given = (self.status, self.code, self.json, self.body, self.redirect, self.huge)
        return self.html or self.empty or any(part is not None for part in given)

    @property
    def acts(self) -> bool:
        return not self.drop_before and (self.after or not self.answers_itself)


class Script:
    """The faults in force, oldest first; each call meets the first that fits it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[tuple[Fault, list[int]]] = []

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append((fault, [0]))

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def take(self, fits: Callable[[Fault], bool]) -> Fault | None:
        """The first fault that fits, counted as used."""
        with self._lock:
            for fault, used in self._faults:
                if (fault.times is None or used[0] < fault.times) and fits(fault):
                    used[0] += 1
                    return fault
        return None

    def unused(self) -> list[Fault]:
        """Faults with a number of times that did not all happen."""
        with self._lock:
            return [
                fault for fault, used in self._faults if fault.times is not None and used[0] < fault.times
            ]
