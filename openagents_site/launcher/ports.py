"""Which port a server of ours listens on."""

from __future__ import annotations

import socket

HIGHEST_PORT = 65535
TRIED = 100


class PortTaken(Exception):
    """The port that was asked for, or every one near it, belongs to another program."""


def choose(asked: str | None, usual: int, what: str, setting: str) -> int:
    """The port asked for, else `usual` or the first free one after it. Raises PortTaken with one sentence.

    `what` and `setting` name the server and the setting in that sentence.
    """
    if asked:
        if not asked.isdigit() or not 0 < int(asked) <= HIGHEST_PORT:
            raise PortTaken(f"{setting} must be a port number from 1 to {HIGHEST_PORT}, not {asked!r}")
        if not is_free(int(asked)):
            raise PortTaken(
                f"Port {asked} ({setting}) is taken by another program: end that one, or name another port for the {what}"
            )
        return int(asked)
    for port in range(usual, usual + TRIED):
        if is_free(port):
            return port
    raise PortTaken(
        f"No port from {usual} to {usual + TRIED - 1} is free for the {what}: name one with {setting}"
    )


def is_free(port: int) -> bool:
    """Whether a server can listen on this port of the loopback address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
