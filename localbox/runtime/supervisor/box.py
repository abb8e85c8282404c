"""The supervisor's work: what is asked of a box, and what becomes of its processes."""

from __future__ import annotations

import os
import time

from . import files, processes
from .commands import Command, DetachedCommand, SynchronousCommand
from .errands import run_errand
from .fault import Fault
from .loop import Loop
from .records import Records
from .settings import Settings
from .wire import Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .errands import Work
    from .sandbox import Sandbox
    from .server import Request

_STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.01


class Box:
    """One box that is up."""

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        self.settings = settings
        self.loop = Loop(self._child_ended)
        self.ended = False
        self._sandbox = sandbox
        self._records = Records(os.path.join(settings.run, "commands"))
        self._commands: dict[int, Command] = {}
        self._operations: dict[str, Callable[[Request], None]] = {
            "ping": lambda request: request.reply({"box_id": settings.box_id}),
            "run": self._run,
            "start": self._start,
            "status": self._status,
            "read": self._read,
            "write": self._write,
            "disk": lambda request: self._errand(request, files.disk),
            "stop": self._stop,
        }

    def handle(self, request: Request) -> None:
        """Do what is asked; every request gets one answer, a fault if need be."""
        operation = self._operations.get(str(request.header.get("do")))
        try:
            if operation is None:
                raise Fault("box_direct_failed", "the supervisor does not know this request")
            operation(request)
        except Fault as fault:
            request.refuse(fault.code, fault.message)
        except Exception as error:
            request.refuse("box_direct_failed", f"the box could not do it: {error}")
            raise

    def end(self) -> None:
        """End every process of the box and wait for it; what ran is recorded as killed."""
        self.ended = True
        until = time.monotonic() + _STOP_SECONDS
        while (self._sandbox.kill_all() or self._kill_errands()) and time.monotonic() < until:
            self.loop.reap()
            time.sleep(_LOOK_SECONDS)
        self.loop.reap()
        for command in list(self._commands.values()):
            command.abandoned()
        self.loop.stop()

    def _run(self, request: Request) -> None:
        seconds = float(str(request.header["timeout_seconds"]))
        order = request.body, _text(request.header.get("cwd"))
        command = SynchronousCommand(self.loop, self._sandbox, order, seconds, request.reply)
        self._commands[command.pid] = command

    def _start(self, request: Request) -> None:
        order = request.body, _text(request.header.get("cwd"))
        command = DetachedCommand(self.loop, self._sandbox, order, self._records)
        self._commands[command.pid] = command
        request.reply(_without_command(command.record))

    def _status(self, request: Request) -> None:
        number = int(str(request.header["process_id"]))
        tail = int(str(request.header["tail_bytes"]))
        command = self._running(number)
        record = command.record if command else self._records.load(number)
        if record is None:
            raise Fault("not_found", f"the box has no command {number}")
        if command:
            command.catch_up()
            record = {**record, "dropped": command.dropped}
        status = "running" if command else "lost" if record["finished_at"] is None else "exited"
        _Tails(self, request, {**record, "status": status}, tail).fetch()

    def _running(self, number: int) -> DetachedCommand | None:
        self.loop.reap()
        detached = (entry for entry in self._commands.values() if isinstance(entry, DetachedCommand))
        return next((command for command in detached if command.number == number), None)

    def _read(self, request: Request) -> None:
        path = str(request.header["path"])
        self._errand(request, lambda sandbox: files.read(sandbox, path))

    def _write(self, request: Request) -> None:
        path, content = str(request.header["path"]), request.fds[0]
        self._errand(request, lambda sandbox: files.write(sandbox, path, content))

    def _errand(self, request: Request, work: Work) -> None:
        def answer(header: Header, fds: list[int]) -> None:
            request.reply(header, b"", fds)

        run_errand(self.loop, self._sandbox, work, answer)

    def errand(self, work: Work, done: Callable[[Header, list[int]], None]) -> None:
        run_errand(self.loop, self._sandbox, work, done)

    def _stop(self, request: Request) -> None:
        self.end()
        request.reply({"stopped": not self._sandbox.kill_all()})

    def _kill_errands(self) -> bool:
        members = processes.descendants(os.getpid(), processes.table())
        processes.kill(members)
        return bool(members)

    def _child_ended(self, pid: int, status: int) -> None:
        command = self._commands.pop(pid, None)
        if command is not None:
            command.exited(status)
        if self._sandbox.is_gone(pid) and not self.ended:
            self.end()


class _Tails:
    """The answer to a status request: the record, and the last bytes of both logs as the box's user reads them."""

    def __init__(self, box: Box, request: Request, record: Header, size: int) -> None:
        self._box, self._request, self._record, self._size = box, request, record, size
        self._paths = [str(record["log_path"]), str(record["err_path"])]

    def fetch(self) -> None:
        self._box.errand(lambda sandbox: files.logs(sandbox, self._paths), self._answer)

    def _answer(self, header: Header, fds: list[int]) -> None:
        found = header.get("found", [])
        places = [int(index) for index in found] if isinstance(found, list) else []
        tails = [b"", b""]
        cut = [bool(dropped) for dropped in _counts(self._record)]
        for index, fd in zip(places, fds, strict=False):
            tails[index], before = _tail(fd, self._size)
            cut[index] = cut[index] or before
        sizes: Header = {"stdout_size": len(tails[0]), "stdout_truncated": cut[0], "stderr_truncated": cut[1]}
        command = str(self._record["command"]).encode()
        answer = {**_without_command(self._record), **sizes, "command_size": len(command)}
        self._request.reply(answer, tails[0] + tails[1] + command)


def _tail(fd: int, size: int) -> tuple[bytes, bool]:
    """The last `size` bytes of a file, and whether there are others before them."""
    with open(fd, "rb") as file:
        start = max(0, os.fstat(fd).st_size - size)
        file.seek(start)
        return file.read(size), start > 0


def _counts(record: Header) -> list[object]:
    dropped = record.get("dropped")
    return dropped if isinstance(dropped, list) else [0, 0]


def _without_command(record: Header) -> Header:
    return {name: value for name, value in record.items() if name != "command"}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
