"""The frames between provider and supervisor, and a supervisor that is sent something else."""

from __future__ import annotations

import socket
import struct

import pytest

from localbox.runtime.supervisor.wire import MAX_BODY, BrokenFrameError, Decoder, encode

from .rig import Box


@pytest.mark.parametrize("step", [1, 3, 7, 1000])
def test_it_reads_a_frame_in_any_pieces(step: int) -> None:
    data, decoder = encode({"do": "x", "é": [1, None]}, b"\0body\n"), Decoder()

    frames = [decoder.feed(data[at : at + step]) for at in range(0, len(data), step)]

    assert frames[-1] == ({"do": "x", "é": [1, None]}, b"\0body\n")
    assert set(map(type, frames[:-1])) <= {type(None)}


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">II", 1 << 30, 0),
        struct.pack(">II", 2, MAX_BODY + 1),
        struct.pack(">II", 3, 0) + b"{x}",
        struct.pack(">II", 2, 0) + b"[]",
    ],
)
def test_it_refuses_what_is_no_frame(data: bytes) -> None:
    with pytest.raises(BrokenFrameError):
        Decoder().feed(data)


def test_it_serves_on_after_nonsense(box: Box) -> None:
    for data in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100,
        encode({"do": "unknown"}),
        encode({}),
        encode({"do": "run"}),
        encode({"do": "write", "path": "x"}),
    ):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(box.handle.record.socket)
            peer.sendall(data)

    assert box.output("echo fine") == "fine"


def test_it_serves_on_when_an_asker_leaves_early(box: Box) -> None:
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(box.handle.record.socket)
            peer.sendall(
                encode({"do": "run", "cwd": None, "timeout_seconds": 20}, b"head -c 1000000 /dev/zero")
            )

    assert box.output("echo fine") == "fine"
