"""A paired computer of a user, whose connector is killed and comes back while the echo agent works there."""

from __future__ import annotations

import random
from pathlib import Path

from tests.connector.conftest import Connector
from tests.faults.installation import Api

WAITS = "wait until-it-is-cancelled"
WORK = (
    ("say done",),
    ("append notes done", "say done"),
    ("spawn left-behind", "say done"),
    ("sh sleep 2; echo done",),
    ("spawn left-behind", WAITS),
)


class Computer:
    """Made in `folder`, paired, and connected."""

    def __init__(self, url: str, token: str, folder: Path) -> None:
        self._connector = Connector(url, Api(url, token), folder)
        self._connector.pair("shell")
        self._connector.start()
        self._connector.await_online()

    def wish(self, rng: random.Random) -> dict[str, str]:
        """The body of a delegation to it."""
        machine, root = self._connector.machine["id"], str(self._connector.root)
        prompt = "\n".join(rng.choice(WORK))
        return {"kind": "delegation", "machine": machine, "agent_id": "echo", "cwd": root, "prompt": prompt}

    def kill9(self) -> None:
        """Kill the connector; what it started lives on."""
        self._connector.kill9()

    def ensure(self) -> None:
        """Start the connector if it does not run."""
        process = self._connector.process
        if process is None or process.poll() is not None:
            self._connector.start()

    def clear_away(self) -> None:
        self._connector.clear_away()
