"""A whole installation for the tests of the API's contract, on a database that is a copy of the tests' own."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import requests
from django.db import connection, connections
from psycopg import sql

from base.embedded_postgres import Connection
from tests.faults.installation import Installation
from tests.localbox.server import LocalboxServer

SETTINGS = {
    "WORK_MODEL": "echo",
    "BOX_MAXIMUM_ACTIVE_BOXES": "4",
    "BOX_DEFAULT_MAXIMUM_ACTIVE_BOXES": "4",
    "BOX_MAXIMUM_ACTIVE_BOXES_PER_OWNER": "4",
    "LOG_LEVEL": "DEBUG",  # so that everything that could be told is
}
# One of each kind that an installation may be given; others are its own, or are handed out by the API.
SECRETS = {
    "WORK_MODEL_API_KEY": f"model-{secrets.token_urlsafe(24)}",
    "BOX_WEBHOOK_SECRET": f"webhook-{secrets.token_urlsafe(24)}",
    "GITHUB_CLIENT_SECRET": f"github-{secrets.token_urlsafe(24)}",
    "SECRET_KEY_FALLBACKS": f"former-{secrets.token_urlsafe(40)}",
    "SECRET_VALUES": f"registered-{secrets.token_urlsafe(24)}",
}
PASSWORD = secrets.token_urlsafe(24)  # the database asks for none; it is carried wherever one would be


@dataclass
class Running:
    """The running installation, and the tokens of its users: `owner`, `reader` (the owner's, for reading), `staff`, `stranger`."""

    installation: Installation
    tokens: dict[str, str]

    @property
    def url(self) -> str:
        return self.installation.url

    @property
    def provider(self) -> LocalboxServer:
        return self.installation.provider

    def description(self) -> dict[str, Any]:
        """The OpenAPI description as the server gives it."""
        found: dict[str, Any] = requests.get(f"{self.url}/api/schema/?format=json", timeout=60).json()
        return found

    def execute(self, statement: str, parameters: list[Any] | None = None) -> None:
        with psycopg.connect(**self.installation.database.parameters(), autocommit=True) as database:
            database.execute(statement, parameters)

    def leak(self) -> str:
        """A box at the provider that no row of ours claims, as a pass reports it once it is a minute old. Its provider's id."""
        box_id = self._foreign_box()
        self.execute(
            "insert into box_reconciliation_events (id, provider_box_id, event_type, reason, owned, details, observed_at,"
            " last_seen_at) values (gen_random_uuid(), %s, 'leak', 'provider_box_without_ledger_claim', false, %s, now(), now())",
            [box_id, json.dumps({"id": box_id, "state": "ready"})],
        )
        return box_id

    def _foreign_box(self) -> str:
        answer = requests.post(
            f"{self.provider.base_url}/boxes",
            json={"ttlSeconds": 3600},
            headers={
                "Authorization": f"Bearer {self.provider.key}",
                "Idempotency-Key": secrets.token_hex(8),
            },
            timeout=60,
        ).json()
        return str(answer.get("box", answer)["id"])


def database_of_this_process() -> Connection:
    """What Django is set up on, with every connection to it closed, so that it can be copied."""
    known = connection.get_connection_params()
    connections.close_all()
    return Connection(
        host=known.get("host", "localhost"),
        user=known["user"],
        dbname=known["dbname"],
        port=int(known.get("port") or 5432),
        password=known.get("password", ""),
    )


@contextmanager
def running(template: Connection) -> Iterator[Running]:
    """The provider, web and a worker, on a copy of `template`, to which nothing may be connected meanwhile."""
    database = replace(
        template, dbname=f"{template.dbname}_contract_{os.getpid()}", password=template.password or PASSWORD
    )
    with psycopg.connect(**replace(template, dbname="postgres").parameters(), autocommit=True) as admin:
        drop = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(database.dbname))
        admin.execute(drop)
        admin.execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(database.dbname), sql.Identifier(template.dbname)
            )
        )
        try:
            with (
                LocalboxServer(settings={"max_active_boxes": "40", "log_level": "warning"}) as provider,
                Installation(database, provider, SETTINGS | SECRETS | {"GITHUB_CLIENT_ID": "tests"}) as made,
            ):
                tokens = json.loads(made.run("-m", "tests.contract.prepare"))
                made.add_web()
                made.add_worker()
                made.await_web()
                yield Running(made, tokens)
        finally:
            admin.execute(drop)
