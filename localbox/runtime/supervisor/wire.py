"""Frames on the unix socket between the provider and a supervisor.

A frame is two lengths (4 bytes each, big endian), a JSON object and raw bytes. One connection carries one request
and one answer. Open files travel beside a frame (SCM_RIGHTS), so that file contents pass through neither memory.
"""

from __future__ import annotations

import json
import struct

MAX_HEADER = 1 << 20
MAX_BODY = 64 << 20

_LENGTHS = struct.Struct(">II")

Header = dict[str, object]


class BrokenFrameError(Exception):
    """The other side sent something that is not a frame, or a frame beyond the limits."""


def encode(header: Header, body: bytes = b"") -> bytes:
    """One frame, ready to be sent."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


class Decoder:
    """Collects received bytes until they are one whole frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> tuple[Header, bytes] | None:
        """Add `data`; the frame's header and body once it is complete, else None. Raises `BrokenFrameError`."""
        self._buffer += data
        if len(self._buffer) < _LENGTHS.size:
            return None
        header_size, body_size = _LENGTHS.unpack_from(self._buffer)
        if header_size > MAX_HEADER or body_size > MAX_BODY:
            raise BrokenFrameError("the frame is larger than allowed")
        start, end = _LENGTHS.size, _LENGTHS.size + header_size
        if len(self._buffer) < end + body_size:
            return None
        return _parse(bytes(self._buffer[start:end])), bytes(self._buffer[end : end + body_size])


def _parse(text: bytes) -> Header:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise BrokenFrameError("the header is not JSON") from error
    if not isinstance(header, dict):
        raise BrokenFrameError("the header is not an object")
    return header
