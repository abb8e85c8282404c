"""The embedded PostgreSQL: a real server from a pip wheel, run in a folder of its own, reached by a unix socket only.

Used where DATABASE_URL is not set. `Cluster` owns the life of a server, `database_settings` tells Django where one is, and
`explain` turns "nothing listens" into a sentence. Read `docs/reference/embedded-postgres.md` for what operators see.
"""

from __future__ import annotations

from .account import Account, server_account
from .cluster import Cluster, Status
from .connection import DATABASE, Connection, connection_to, database_settings
from .errors import EmbeddedPostgresError
from .explain import explain
from .postmaster import State

__all__ = [
    "DATABASE",
    "Account",
    "Cluster",
    "Connection",
    "EmbeddedPostgresError",
    "State",
    "Status",
    "connection_to",
    "database_settings",
    "explain",
    "server_account",
]
