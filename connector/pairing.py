"""Pairing this computer: it shows a code, its owner approves it, it gets its key."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from connector import VERSION, agents
from connector.errors import ConnectorError, Refused, Unreachable
from connector.places import Pairing, Places
from connector.roots import declared
from connector.server import Server, checked_address

LOOK_SECONDS = 2.0
PATIENCE_SECONDS = 300.0  # with a server that asks to be asked later
Say = Callable[[str], object]


async def pair(
    places: Places,
    *,
    server: str,
    roots: Sequence[str],
    tier: str,
    name: str | None,
    named: Sequence[str],
    say: Say,
) -> Pairing:
    """Ask to be paired and wait for the owner, ten minutes at most. Raises ConnectorError."""
    address, folders, own_agents = checked_address(server), declared(roots), agents.parse_named(named)
    client = Server(address)
    try:
        description = {
            "name": (name or socket.gethostname() or "computer")[:80],
            "tier": tier,
            "platform": agents.platform_name(),
            "agent_version": VERSION,
            "roots": folders,
        }
        started = await _asked(client, description, say)
        say(f"Code: {started['code']}")
        say(f"Type it in at {started['approve_url']} while you are signed in.")
        claimed = await _approved(client, started)
    finally:
        await client.close()
    machine = claimed["machine"]
    pairing = Pairing(
        address, machine["id"], machine["name"], machine["tier"], claimed["token"], folders, own_agents
    )
    places.forget()  # what an earlier pairing left belongs to another machine
    places.save(pairing)
    say(f"Paired as {pairing.name}. Now: python -m connector run")
    return pairing


async def _asked(client: Server, description: dict[str, Any], say: Say) -> dict[str, Any]:
    """The pairing that was started; asked for again if the server says when (several computers may ask from one address)."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await client.start_pairing(description)
        except Refused as error:
            raise ConnectorError(f"the server refuses: {error.detail or error.code}") from None
        except Unreachable as error:
            if error.seconds is None or time.monotonic() + error.seconds > deadline:
                raise ConnectorError(f"the server cannot be reached: {error}") from None
            say(f"The server asks to wait ({error}): asking again in {error.seconds:.0f} s.")
            await asyncio.sleep(error.seconds)


async def _approved(client: Server, started: dict[str, Any]) -> dict[str, Any]:
    """What the server hands over once the owner has approved."""
    while True:
        pause = LOOK_SECONDS
        try:
            answer = await client.look_at_pairing(started["id"], started["poll_secret"])
            if answer.get("token"):
                return answer
        except Unreachable as error:
            pause = error.seconds or LOOK_SECONDS
        except Refused as error:
            said = {
                "pairing_expired": "nobody approved the code in time",
                "pairing_consumed": "the code was used already",
            }
            raise ConnectorError(said.get(error.code, f"the server refuses: {error.code}")) from None
        await asyncio.sleep(pause)
