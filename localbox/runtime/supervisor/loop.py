"""One thread that waits for everything: sockets, pipes, timers and ended children."""

from __future__ import annotations

import heapq
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ = select.EPOLLIN
WRITE = select.EPOLLOUT


class Timer:
    """A call that is due at a moment of the monotonic clock, unless cancelled before."""

    __slots__ = ("call", "due")

    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due = due
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None

    def __lt__(self, other: Timer) -> bool:
        return self.due < other.due


class Loop:
    """Calls back when a file is ready, a timer is due or a child has ended. One failing callback ends nothing."""

    def __init__(self, on_child: Callable[[int, int], None]) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._timers: list[Timer] = []
        self._on_child = on_child
        self._running = True
        self._woken, self._wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        self.watch(self._woken, READ, self._children_ended)

    def watch(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        """Call back each time `fd` is ready for `events`, or broken. Replaces what was watched before."""
        if fd in self._callbacks:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
        self._callbacks[fd] = callback

    def forget(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + seconds, call)
        heapq.heappush(self._timers, timer)
        return timer

    def stop(self) -> None:
        """Return from `run` once the present callback is done."""
        self._running = False

    def run(self) -> None:
        while self._running:
            for fd, _ in self._poll():
                callback = self._callbacks.get(fd)
                if callback is not None:
                    guarded(callback)
            self._fire_timers()

    def reap(self) -> None:
        """Collect every child that has ended, also those adopted as a subreaper."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._on_child(pid, status)

    def _poll(self) -> list[tuple[int, int]]:
        while self._timers and self._timers[0].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return self._epoll.poll()
        return self._epoll.poll(max(0.0, self._timers[0].due - time.monotonic()))

    def _fire_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0].due <= now:
            call = heapq.heappop(self._timers).call
            if call is not None:
                guarded(call)

    def _children_ended(self) -> None:
        os.read(self._woken, 4096)
        self.reap()


def guarded(call: Callable[[], None]) -> None:
    """One broken request must not end the box: its traceback goes to the supervisor's log."""
    try:
        call()
    except Exception:
        sys.excepthook(*sys.exc_info())
