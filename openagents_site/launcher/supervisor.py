"""Keeps every part running until asked to stop. See docs/reference/launcher.md for what it promises."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

from base.errors import CodedError

from .logs import Lines, LogFile
from .part import Part
from .terminal import Terminal

PR_SET_CHILD_SUBREAPER = 36
TICK_SECONDS = 1.0
READ_BYTES = 64 << 10
# Whether a part that runs must be restarted, and why: part -> sentence or None.
Watch = Callable[[Part], str | None]


class Supervisor:
    """Starts, watches, restarts and stops parts. Lives in the main thread, since its end is what its children notice."""

    def __init__(
        self, parts: Sequence[Part], terminal: Terminal, log: LogFile, watches: Sequence[Watch] = ()
    ) -> None:
        self.parts = list(parts)
        self._terminal = terminal
        self._log = log
        self.watches = list(watches)
        self._selector = selectors.DefaultSelector()
        self._asked_to_stop = 0
        self._wake_reader, self._wake_writer = os.pipe()
        for end in (self._wake_reader, self._wake_writer):
            os.set_blocking(end, False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)
        self.stopping = threading.Event()

    def take_signals(self) -> None:
        """Stop on SIGTERM, SIGINT and a closed terminal; adopt orphans of our children. Main thread only."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup is respected
                signal.signal(number, self._on_stop_signal)

    def request_stop(self) -> None:
        """Stop in good order; a second request ends everything at once. From any thread."""
        self._asked_to_stop += 1
        self.stopping.set()
        with suppress(BlockingIOError):
            os.write(self._wake_writer, b"!")

    def run(self) -> None:
        """Keep everything running until a stop is requested, then stop everything."""
        while not self._asked_to_stop:
            self.run_once()
        self.stop()

    def run_once(self, wait_seconds: float = TICK_SECONDS) -> None:
        """Wait for something to happen, at most `wait_seconds`, and do what is due."""
        self._collect_ends()
        for part in self.parts:
            if part.is_due():
                self._start(part)
        self._apply_watches()
        self._read_output(self._seconds_to_wait(wait_seconds))

    def stop(self) -> None:
        """End all parts, phase by phase."""
        self.stopping.set()
        for part in self.parts:
            part.due_at = None
        for phase in sorted({part.stop_phase for part in self.parts}):
            self._stop_phase([part for part in self.parts if part.stop_phase == phase and part.is_running])
        self._read_output(0)

    def _stop_phase(self, running: list[Part]) -> None:
        if not running:
            return
        self.announce("stopping " + ", ".join(part.name for part in running))
        for part in running:
            part.process.ask_to_end()
        asked, forced = time.monotonic(), set[str]()
        while running := [part for part in running if part.is_running]:
            for part in running:
                late = time.monotonic() - asked > part.stop_seconds
                if (late or self._asked_to_stop > 1) and part.name not in forced:
                    forced.add(part.name)
                    self.announce("did not end in time, is killed" if late else "is killed", part, bad=True)
                    part.process.kill()
            self._read_output(0.2)
            self._collect_ends()

    def _start(self, part: Part) -> None:
        try:
            output = part.start()
        except (OSError, CodedError) as error:
            self.announce(
                f"could not be started: {getattr(error, 'detail', error)}; next try in {part.put_off():.1f} s",
                part,
                bad=True,
            )
            return
        if output is not None:
            os.set_blocking(output, False)
            self._selector.register(output, selectors.EVENT_READ, (part, Lines()))
        self.announce(
            f"started, process {part.process.pid}"
            if part.starts == 1
            else f"is back, process {part.process.pid}",
            part,
        )

    def _collect_ends(self) -> None:
        for part in self.parts:
            if not part.is_running or (how := part.process.end()) is None:
                continue
            if self.stopping.is_set():
                self.announce(f"{how}", part)
            else:
                self.announce(f"{how}; is started again in {part.put_off():.1f} s", part, bad=True)
        self._bury_orphans()

    def _bury_orphans(self) -> None:
        """Take the exit status of adopted processes. A child of ours that ended meanwhile is left for its part."""
        own = {part.process.pid for part in self.parts}
        with suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid in own:
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)

    def _apply_watches(self) -> None:
        for part in self.parts:
            for watch in self.watches:
                if part.is_running and (reason := watch(part)) is not None:
                    self.announce(f"{reason}: its process group is killed", part, bad=True)
                    part.process.kill()

    def _seconds_to_wait(self, longest: float) -> float:
        due = [part.due_at - time.monotonic() for part in self.parts if part.due_at is not None]
        return max(0.0, min([longest, *due]))

    def _read_output(self, wait_seconds: float) -> None:
        for key, _ in self._selector.select(wait_seconds):
            if key.data is None:
                with suppress(BlockingIOError):
                    os.read(self._wake_reader, 4096)
            else:
                self._read_part(key.fd, *key.data)

    def _read_part(self, output: int, part: Part, lines: Lines) -> None:
        try:
            chunk = os.read(output, READ_BYTES)
        except BlockingIOError:
            return
        for line in lines.feed(chunk):
            part.log.write_line(line)
            self._terminal.output(part.name, line)
        if not chunk:
            self._selector.unregister(output)
            os.close(output)

    def _on_stop_signal(self, number: int, _frame: FrameType | None) -> None:
        self.request_stop()

    def announce(self, text: str, part: Part | None = None, *, bad: bool = False) -> None:
        """Say what happened, on the terminal and in the supervisor's log."""
        name = "up" if part is None else part.name
        self._log.write_line(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {name} {text}")
        self._terminal.event(name, text, bad=bad)
