"""Commands that run: one that somebody waits for, and one that goes on by itself."""

from __future__ import annotations

import os
import signal
import time

from . import ending, processes
from .loop import Loop, Timer
from .spawn import Order, Spawned, spawn
from .streams import KeptStream, LoggedStream, Stream
from .wire import Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .records import Records
    from .sandbox import Sandbox

    Reply = Callable[[Header, bytes], None]

_LAST_OUTPUT_SECONDS = 0.2  # for what comes after the shell's end while a background child holds the streams
_TERM_SECONDS = 2.0  # between the request to end and the end
_LOOK_SECONDS = 0.05
_UNKILLABLE_SECONDS = 10.0  # a process that hangs in the kernel does not die; the answer comes without it


class Command:
    """A process of the box that the supervisor started and will reap."""

    pid: int

    def exited(self, status: int) -> None:
        raise NotImplementedError

    def abandoned(self) -> None:
        """The sandbox is gone and the command's end was not seen."""


class SynchronousCommand(Command):
    """Runs to its end or to its timeout, then answers once, whether or not anybody still listens."""

    def __init__(
        self, loop: Loop, sandbox: Sandbox, order: tuple[bytes, str | None], seconds: float, reply: Reply
    ) -> None:
        self._loop, self._reply = loop, reply
        self._started_at = time.time()
        self._spawned, (out, err) = _start(sandbox, order, [])
        self.pid = self._spawned.pid
        ceiling = sandbox.settings.limits.output_bytes
        self._streams = KeptStream(loop, out, ceiling), KeptStream(loop, err, ceiling)
        self._finished_at = 0.0
        self._end: ending.End | None = None
        self._members: processes.Table = {}  # of the command's tree, once its time is over
        self._killer = "SIGTERM"
        self._timed_out = False
        self._timer: Timer | None = loop.after(seconds, self._expire)

    def exited(self, status: int) -> None:
        self._finished_at = time.time()
        self._end = ending.describe(status)
        for stream in self._streams:
            stream.drain()
        if self._timed_out:
            return  # the rest of its tree is still being ended
        self._cancel_timer()
        if all(stream.ended for stream in self._streams):
            self._answer()
        else:
            self._timer = self._loop.after(_LAST_OUTPUT_SECONDS, self._answer)

    def abandoned(self) -> None:
        self._cancel_timer()
        self._reply({"code": "box_direct_failed", "message": "the box stopped while the command ran"}, b"")
        for stream in self._streams:
            stream.close()

    def _expire(self) -> None:
        self._timed_out = True
        self._look()
        for pid in self._members:
            processes.send(pid, signal.SIGTERM)
        self._wait_for_end(time.monotonic() + _TERM_SECONDS)

    def _wait_for_end(self, until: float) -> None:
        self._look()
        now = time.monotonic()
        if (not self._members and self._end is not None) or now > until + _UNKILLABLE_SECONDS:
            self._answer()
            return
        if now > until:
            self._killer = "SIGKILL" if self._end is None else self._killer
            processes.kill(self._members)
        self._timer = self._loop.after(_LOOK_SECONDS, lambda: self._wait_for_end(until))

    def _look(self) -> None:
        self._members = processes.command_tree(self.pid, self._members, processes.table())

    def _answer(self) -> None:
        self._cancel_timer()
        kept = [stream.hand_over() for stream in self._streams]
        code, by = (None, self._killer) if self._timed_out else self._end or (None, None)
        header: Header = {
            "exit_code": code,
            "signal": by,
            "timed_out": self._timed_out,
            "stdout_size": len(kept[0]),
            "stdout_truncated": self._streams[0].dropped > 0,
            "stderr_truncated": self._streams[1].dropped > 0,
            "started_at": self._started_at,
            "finished_at": self._finished_at,
            "cwd": self._spawned.cwd,
        }
        self._reply(header, b"".join(kept))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class DetachedCommand(Command):
    """Outlives its request and the provider. Its end is written down when it comes."""

    def __init__(
        self, loop: Loop, sandbox: Sandbox, order: tuple[bytes, str | None], records: Records
    ) -> None:
        self.number = records.next_id()
        self._records = records
        folder = f"{sandbox.view.home}/.openagents/commands/{self.number}"
        paths = [f"{folder}/stdout.log", f"{folder}/stderr.log"]
        started_at = time.time()
        spawned, pipes = _start(sandbox, order, paths)
        self.pid = spawned.pid
        self._streams = _logged(loop, pipes, spawned, sandbox.settings.limits.log_bytes)
        self.record: Header = {
            "process_id": self.number,
            "pid": spawned.inner_pid,
            "command": order[0].decode(),
            "cwd": spawned.cwd,
            "log_path": paths[0],
            "err_path": paths[1],
            "started_at": started_at,
            "finished_at": None,
            "exit_code": None,
            "signal": None,
        }
        records.save(self.number, self.record)

    @property
    def dropped(self) -> list[object]:
        """Bytes of each stream that were beyond the log's ceiling."""
        return [stream.dropped for stream in self._streams]

    def catch_up(self) -> None:
        """Bring the logs up to what the command has written so far."""
        for stream in self._streams:
            stream.drain()

    def exited(self, status: int) -> None:
        self.catch_up()
        code, by = ending.describe(status)
        end: Header = {"finished_at": time.time(), "exit_code": code, "signal": by, "dropped": self.dropped}
        self.record.update(end)
        self._records.save_end(self.number, self.record)


def _start(
    sandbox: Sandbox, order: tuple[bytes, str | None], logs: list[str]
) -> tuple[Spawned, tuple[int, int]]:
    out, to_out = os.pipe()
    err, to_err = os.pipe()
    try:
        spawned = spawn(sandbox, Order(order[0], order[1], to_out, to_err, logs))
    except BaseException:
        os.close(out)
        os.close(err)
        raise
    finally:
        os.close(to_out)
        os.close(to_err)
    return spawned, (out, err)


def _logged(loop: Loop, pipes: tuple[int, int], spawned: Spawned, ceiling: int) -> list[Stream]:
    pairs = zip(pipes, spawned.logs, strict=True)
    return [LoggedStream(loop, pipe, log, ceiling) for pipe, log in pairs]
