"""The connector at work, from its start until it is asked to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from connector import VERSION, logs
from connector.channel import Channel
from connector.delegating import Delegations
from connector.journal import opened
from connector.places import Pairing, Places
from connector.server import Server


async def run(places: Places, pairing: Pairing) -> None:
    """Keep the channel and run what comes, until SIGTERM or SIGINT. Raises NotLetIn and Superseded."""
    journal = opened(places.journal_file)
    server = Server(pairing.server, pairing.token)
    delegations = Delegations(pairing, places, journal)
    channel = Channel(server, journal, delegations)
    keeping = asyncio.create_task(channel.keep())
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, keeping.cancel)
    logs.event("started", version=VERSION, machine=pairing.machine_id, tier=pairing.tier)
    delegations.resume()
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
    finally:
        await delegations.stop()
        if keeping.cancelled():
            await channel.say_goodbye()
        await server.close()
        journal.close()
        logs.event("stopped")
