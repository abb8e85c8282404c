"""Git's own CGI program as a child process: its environment, its input from a thread, its end for sure."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from forge.conf import storage_root
from forge.git.environment import environment, http_backend
from forge.git.storage import relative_path
from forge.models import Repository

PIECE = 64 * 1024
LARGEST_HEAD = 16 * 1024
END_SECONDS = 10.0
LOOK_SECONDS = 5.0
"""How often it is looked whether the client is too slow."""
BOUNDED = 'ulimit -d "$1" 2>/dev/null; shift; exec "$@"'  # where there is a lower bound already it stays
_PROTOCOL = re.compile(r"[a-z0-9=:._-]{1,128}")


class Timeout(Exception):
    """Git took longer than it may."""


class BadAnswer(Exception):
    """Git answered nothing that could be passed on."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of Git's answer."""

    status: int
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """What Git is asked: the service, and whether only for the list of refs."""

    service: str
    is_advertisement: bool
    content_type: str = ""
    protocol: str = ""

    def variables(self, repository: Repository) -> dict[str, str]:
        """The CGI variables; nothing of the request gets in unchecked."""
        rest = "info/refs" if self.is_advertisement else self.service
        variables = {
            "GIT_PROJECT_ROOT": str(storage_root()),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{relative_path(repository.storage_key)}/{rest}",
            "REQUEST_METHOD": "GET" if self.is_advertisement else "POST",
            "QUERY_STRING": f"service={self.service}" if self.is_advertisement else "",
            "CONTENT_TYPE": f"application/x-{self.service}-request" if self.content_type else "",
        }
        if _PROTOCOL.fullmatch(self.protocol):
            variables["GIT_PROTOCOL"] = self.protocol
        return variables


class Backend:
    """One run of the program. Leaving the context ends it and every process that it started, and hears its client out."""

    def __init__(
        self,
        repository: Repository,
        call: Call,
        *,
        seconds: float,
        pass_fds: Sequence[int] = (),
        more: Mapping[str, str] | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        self._deadline = time.monotonic() + seconds
        self._feeder: threading.Thread | None = None
        self._stop_client: Callable[[], None] = lambda: None
        self._is_too_slow: Callable[[], bool] = lambda: False
        self._process = subprocess.Popen(
            _command(memory_bytes),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(**call.variables(repository), **(more or {})),
            pass_fds=list(pass_fds),
            start_new_session=True,
            bufsize=0,
        )
        self._output = self._pipe(self._process.stdout)

    def feed(
        self,
        pieces: Callable[[], bytes],
        on_error: Callable[[Exception], None],
        stop: Callable[[], None] = lambda: None,
        is_too_slow: Callable[[], bool] = lambda: False,
    ) -> None:
        """Give Git its input from a thread: `pieces()` until it is empty. What that raises is for `on_error` to deal with;
        after `stop()` it has no more to give. It is not waited for while `is_too_slow()`."""
        self._stop_client, self._is_too_slow = stop, is_too_slow
        self._feeder = threading.Thread(target=self._feed, args=(pieces, on_error), daemon=True)
        self._feeder.start()

    def close_input(self) -> None:
        with suppress(OSError):
            self._pipe(self._process.stdin).close()

    @property
    def output(self) -> int:
        """The descriptor of its output."""
        return self._output.fileno()

    def read(self) -> bytes:
        """The next piece of output, empty at its end. Raises Timeout."""
        self.wait_for(self.output)
        return os.read(self.output, PIECE)

    def wait_for(self, *descriptors: int) -> list[int]:
        """Those of these descriptors that can be read, as soon as one can. Raises Timeout."""
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        while (left := self._deadline - time.monotonic()) > 0:
            if ready := poll.poll(min(left, LOOK_SECONDS) * 1000):
                return [descriptor for descriptor, _ in ready]
            self._look_at_client()
        raise Timeout

    def _look_at_client(self) -> None:
        """One that is too slow has no time left."""
        if self._feeder is not None and self._feeder.is_alive() and self._is_too_slow():
            self.shorten(0)

    def shorten(self, seconds: float) -> None:
        """From now on it may take that long at most."""
        self._deadline = min(self._deadline, time.monotonic() + seconds)

    def end(self) -> int:
        """Wait a moment for its end, then see to it; returns its exit status. Safe to call again."""
        self.close_input()
        with suppress(OSError):
            self._output.close()
        try:
            return self._process.wait(END_SECONDS if self._deadline > time.monotonic() else 0)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def kill(self) -> None:
        """End it and all that it started, at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        self.end()
        self._hear_out()

    def _hear_out(self) -> None:
        """Whoever answers has the connection to itself: nothing of ours reads from it any more."""
        if self._feeder is None:
            return
        while self._feeder.is_alive() and (left := self._deadline - time.monotonic()) > 0:
            self._feeder.join(min(left, LOOK_SECONDS))
            self._look_at_client()
        if self._feeder.is_alive():
            self._stop_client()
            self._feeder.join(END_SECONDS)

    def _feed(self, pieces: Callable[[], bytes], on_error: Callable[[Exception], None]) -> None:
        stdin = self._pipe(self._process.stdin)
        try:
            while piece := pieces():
                _write_all(stdin, piece)
        except (BrokenPipeError, ValueError):
            _drain(pieces)  # Git has heard enough, or was ended
        except Exception as error:
            on_error(error)
        finally:
            self.close_input()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


def _command(memory_bytes: int | None) -> list[str]:
    """Git's program, which takes no more memory of its own than this, nor does anything that it starts; files that are mapped do not
    count. A few megabytes of a push can unpack to gigabytes: a file is streamed, but any other object is held whole.

    A shell bounds itself and becomes the program: bound from here, it would have started others already on a busy machine.
    """
    if memory_bytes is None:
        return [http_backend()]
    return ["/bin/sh", "-c", BOUNDED, "sh", str(memory_bytes // 1024), http_backend()]


def split_head(data: bytes) -> tuple[Head, bytes] | None:
    """The head of a CGI answer and what follows it; None if it is not all here yet. Raises BadAnswer."""
    for mark in (b"\r\n\r\n", b"\n\n"):
        if mark in data:
            head, rest = data.split(mark, 1)
            return _head(head), rest
    if len(data) > LARGEST_HEAD:
        raise BadAnswer
    return None


def _head(data: bytes) -> Head:
    status, headers = 200, []
    for line in data.decode("latin-1").splitlines():
        name, colon, value = line.partition(": ")
        if not colon:
            raise BadAnswer
        if name.lower() == "status":
            status = int(value.split()[0])
        else:
            headers.append((name, value))
    return Head(status, tuple(headers))


def _drain(pieces: Callable[[], bytes]) -> None:
    """The rest of it, for nobody: a client that is still sending does not hear its answer."""
    with suppress(Exception):
        while pieces():
            continue


def _write_all(pipe: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[pipe.write(view) :]
