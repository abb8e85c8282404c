"""Which port a server of ours listens on.

Between the choice of a port and the moment its server listens there, another start on this machine must not choose it
too. So a chosen port is reserved by a name in the kernel's table of abstract unix sockets: it is seen by every account,
belongs to the network namespace as ports do, and is gone with the process that holds it.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace

HIGHEST_PORT = 65535
TRIED = 100


class PortTaken(Exception):
    """The port that was asked for, or every one near it, belongs to another program."""


@dataclass(frozen=True)
class Reserved:
    """A port that no other start takes as long as this object is kept."""

    port: int
    hold: socket.socket
    was_asked: bool = False

    def release(self) -> None:
        self.hold.close()


def choose(asked: str | None, usual: int, what: str, setting: str) -> Reserved:
    """The port asked for, else `usual` or the first free one after it. Raises PortTaken with one sentence.

    `what` and `setting` name the server and the setting in that sentence.
    """
    if asked:
        if not is_port(asked):
            raise PortTaken(f"{setting} must be a port number from 1 to {HIGHEST_PORT}, not {asked!r}")
        reserved = reserve(int(asked))
        if reserved is None:
            raise PortTaken(
                f"Port {asked} ({setting}) is taken by another program: end that one, or name another port for the {what}"
            )
        return replace(reserved, was_asked=True)
    for port in range(usual, usual + TRIED):
        if (reserved := reserve(port)) is not None:
            return reserved
    raise PortTaken(
        f"No port from {usual} to {usual + TRIED - 1} is free for the {what}: name one with {setting}"
    )


def is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text[:20]) <= HIGHEST_PORT


def reserve(port: int) -> Reserved | None:
    """The port, if it is free and no other start has reserved it."""
    hold = socket.socket(socket.AF_UNIX)
    try:
        hold.bind(f"\0openagents-boxes/port/{port}")
    except OSError:
        hold.close()
        return None
    if not is_free(port):
        hold.close()
        return None
    return Reserved(port, hold)


def is_free(port: int) -> bool:
    """Whether a server can listen on this port of the loopback address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
