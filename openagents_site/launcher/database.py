"""The embedded PostgreSQL as one of the supervised parts."""

from __future__ import annotations

import signal

from base.embedded_postgres.cluster import Cluster


class Database:
    """A `Process` around the server. If another supervisor runs the server, it is used and left running."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pid: int | None = None

    @property
    def pid(self) -> int | None:
        return self._pid

    def start(self) -> None:
        """Returns when the server answers and has our database; after a kill this includes its recovery."""
        self._pid = self._cluster.start().pid
        self._cluster.ensure_database()

    def end(self) -> str | None:
        if self._pid is None or (status := self._cluster.poll()) is None:
            return None
        self._pid = None
        return (
            f"was killed by {signal.Signals(-status).name}"
            if status < -1
            else f"ended with status {max(status, 0)}"
        )

    def ask_to_end(self) -> None:
        """PostgreSQL's fast shutdown; returns when it has ended, since nothing is stopped after it."""
        self._cluster.close()
        self._pid = None

    def kill(self) -> None:
        """A database is shut down in good order, or not at all."""
