"""The body of a request, read piece by piece: plain or chunked, packed or not, never more than may come."""

from __future__ import annotations

import math
import socket
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

PIECE = 64 * 1024
GZIP = 16 + zlib.MAX_WBITS
MOST_MEMBERS = 10_000
"""Of a packed body. Programs that pack in parallel make one of each 64 KiB or more; each costs as much as a large one."""


class BodyTooLarge(Exception):
    """More bytes than may come, as sent or unpacked."""


class BodyBroken(Exception):
    """The client went away in the middle, or sent what cannot be unpacked."""


class BodyTooSlow(Exception):
    """The client takes longer to send than it may."""


class EncodingUnknown(Exception):
    """The body is packed in a way that is not understood."""


class RequestBody:
    """Reads a request's body unpacked. `read` and `exactly` raise BodyTooLarge and BodyBroken."""

    def __init__(self, environ: Mapping[str, Any], limit: int) -> None:
        """Raises BodyTooLarge if the request says that it is, and EncodingUnknown."""
        self._limit = limit
        self._wire = _Wire(environ, limit)
        self._socket: socket.socket | None = environ.get("gunicorn.socket")
        encoding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
        if encoding not in {"", "identity", "gzip", "x-gzip"}:
            raise EncodingUnknown
        self._source: Callable[[], bytes] = self._wire.piece
        if encoding in {"gzip", "x-gzip"}:
            self._source = _Unpacked(self._wire.piece).piece
        self._held = b""
        self.received = 0

    def read(self) -> bytes:
        """The next piece, at most a little over 64 KiB; empty at the end."""
        if self._held:
            piece, self._held = self._held, b""
            return piece
        return self._next()

    def exactly(self, count: int) -> bytes:
        """The next `count` bytes; fewer only at the end."""
        while len(self._held) < count and (piece := self._next()):
            self._held += piece
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def is_slower_than(self, stall_seconds: float) -> bool:
        """Whether the client was waited for longer than that for each 64 KiB, as sent: how long Git takes to read it is not its
        fault. Of a body that has ended nobody may ask."""
        pieces = 1 + self._wire.received // PIECE
        return self._wire.waited_seconds() > pieces * stall_seconds

    def bound_waiting(self, seconds: float) -> None:
        """From now on one wait for the client, and the taking of one piece of the answer by it, ends after that long."""
        if self._socket is not None:
            self._socket.settimeout(seconds)

    def stop(self) -> None:
        """Take no more of it: whoever waits for a client that sends nothing waits no longer. It can still be answered."""
        wire = self._socket
        if wire is not None:
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RD)

    def _next(self) -> bytes:
        piece = self._source()
        self.received += len(piece)
        if self.received > self._limit:
            raise BodyTooLarge
        return piece


def within(seconds: float, body: RequestBody, read: Callable[[], T]) -> T:
    """What `read`, which reads the body, returns or raises. Raises BodyTooSlow if that takes longer than `seconds`."""
    outcome: list[T] = []
    errors: list[Exception] = []

    def carried_out() -> None:
        try:
            outcome.append(read())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=carried_out, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise BodyTooSlow
    if errors:
        raise errors[0]
    return outcome[0]


class _Wire:
    """The bytes as they came. A chunked body has no length: the server below ends it."""

    def __init__(self, environ: Mapping[str, Any], limit: int) -> None:
        self._input = environ["wsgi.input"]
        self._limit, self.received = limit, 0
        self._waited, self._waits_since = 0.0, math.inf
        self._left: int | None = None
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not (chunked and environ.get("wsgi.input_terminated")):
            self._left = _length(environ.get("CONTENT_LENGTH", ""))
            if self._left > limit:
                raise BodyTooLarge

    def piece(self) -> bytes:
        wanted = PIECE if self._left is None else min(PIECE, self._left)
        if wanted == 0:
            return b""
        data = self._read(wanted)
        if self._left is not None:
            if not data:
                raise BodyBroken
            self._left -= len(data)
        self.received += len(data)
        if self.received > self._limit:
            raise BodyTooLarge
        return data

    def waited_seconds(self) -> float:
        """How long the client was waited for so far; may be asked by another thread than the one that reads."""
        return self._waited + max(0.0, time.monotonic() - self._waits_since)

    def _read(self, wanted: int) -> bytes:
        self._waits_since = began = time.monotonic()
        try:
            data: bytes = self._input.read(wanted)
        except Exception as error:  # each server has errors of its own for a body that breaks off
            raise BodyBroken from error
        finally:
            self._waits_since = math.inf
            self._waited += time.monotonic() - began
        return data


class _Unpacked:
    """gzip, unpacked in bounded pieces: a small body can hold a large one."""

    def __init__(self, source: Callable[[], bytes]) -> None:
        self._source = source
        self._unpack = zlib.decompressobj(GZIP)
        self._packed = b""
        self._members = 1

    def piece(self) -> bytes:
        try:
            return self._piece()
        except zlib.error as error:
            raise BodyBroken from error

    def _piece(self) -> bytes:
        while True:
            if not self._packed:
                self._packed = self._source()
            if not self._packed:
                return self._rest()
            if self._unpack.eof:
                self._begin_another()
            data = self._unpack.decompress(self._packed, PIECE)
            self._packed = self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail
            if data:
                return data

    def _begin_another(self) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise BodyBroken
        self._unpack = zlib.decompressobj(GZIP)

    def _rest(self) -> bytes:
        """What is left in the unpacker when nothing more comes."""
        data = b"" if self._unpack.eof else self._unpack.decompress(b"", PIECE)
        if not data and not self._unpack.eof:
            raise BodyBroken
        return data


def _length(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise BodyBroken
    return int(text)
