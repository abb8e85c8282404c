"""Ports for the servers that tests start."""

from __future__ import annotations

import socket

_kept: list[socket.socket] = []


def free_port() -> int:
    """A port on 127.0.0.1 that nobody else is given for as long as this process lives.

    It stays bound here, without listening, so that the kernel gives it to no connection and no other test; a server that sets
    SO_REUSEADDR, as they do, can listen on it all the same, again and again.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    _kept.append(kept)
    return int(kept.getsockname()[1])
