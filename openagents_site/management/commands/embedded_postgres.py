"""`manage.py embedded_postgres start|stop|status|psql`: the embedded database, by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from base import state_root
from base.embedded_postgres import Cluster, EmbeddedPostgresError, State, Status
from base.errors import CodedError

EXIT_NOT_RUNNING = 3


class Command(BaseCommand):
    """Works while the database is down: it asks for no checks and no connection of Django's."""

    help = (
        "Start, stop or look at the embedded PostgreSQL, which is used when DATABASE_URL is not set. "
        "`start` leaves it running in the background and does nothing if it runs already; `stop` ends it; "
        "`status` exits with 0 if it is running and 3 if not; `psql` opens psql on it and passes on what follows `--`."
    )
    requires_system_checks = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["start", "stop", "status", "psql"], help="what to do")
        parser.add_argument(
            "arguments", nargs="*", help="arguments of psql, after `--`: psql -- -c 'select 1'"
        )

    def handle(self, *args: Any, action: str, arguments: list[str], **options: Any) -> None:
        if os.environ.get("DATABASE_URL"):
            raise CommandError(
                "DATABASE_URL is set, so the embedded PostgreSQL is not used; unset it, or use that server's own tools."
            )
        if arguments and action != "psql":
            raise CommandError(f"{action} takes no arguments.")
        actions: dict[str, Callable[[], None]] = {
            "start": self._start,
            "stop": self._stop,
            "status": self._status,
            "psql": lambda: self._psql(arguments),
        }
        try:
            actions[action]()
        except CodedError as error:
            raise CommandError(error.detail) from error

    def _start(self) -> None:
        state = state_root.prepare()
        if state.notice:
            self.stdout.write(state.notice)
        cluster = Cluster(state.postgres)
        already = cluster.status().is_running
        status = cluster.start_detached()
        cluster.ensure_database()
        self.stdout.write(
            f"PostgreSQL {'is already' if already else 'is'} running (process {status.pid}, socket {status.socket})."
        )

    def _stop(self) -> None:
        cluster = self._cluster()
        status = cluster.status()
        if status.supervisor and not status.detached:
            raise CommandError(
                f"PostgreSQL belongs to process {status.supervisor} (bin/up), which would start it again; end that one (Ctrl-C)."
            )
        cluster.stop()
        was_running = status.state not in {State.STOPPED, State.STALE}
        self.stdout.write("PostgreSQL is stopped." if was_running else "PostgreSQL was not running.")

    def _status(self) -> None:
        status = self._cluster().status()
        for line in [*_described(status), *self._reached_by()]:
            self.stdout.write(line)
        if not status.is_running:
            sys.exit(EXIT_NOT_RUNNING)

    def _psql(self, arguments: list[str]) -> None:
        """Becomes psql, so that its exit status, signals and terminal are its own."""
        cluster = self._cluster()
        if not cluster.status().is_running:
            raise EmbeddedPostgresError(
                "not_running", "PostgreSQL is not running; start it with `manage.py embedded_postgres start`."
            )
        program = cluster.psql_argv(*arguments)
        os.execv(program[0], program)  # noqa: S606 - becoming psql is the purpose

    def _reached_by(self) -> list[str]:
        """What other programs of PostgreSQL are told."""
        how = self._cluster().connection()
        return [f"connect     -h {how.host} -p {how.port} -U {how.user} {how.dbname}"]

    def _cluster(self) -> Cluster:
        return Cluster(state_root.resolve() / "postgres")


def _described(status: Status) -> list[str]:
    supervisor = "nobody" if status.supervisor is None else f"process {status.supervisor}"
    background = " (in the background)" if status.detached else ""
    return [
        f"state       {status.state}",
        f"process     {status.pid or 'none'}",
        f"supervisor  {supervisor}{background}",
        f"version     {status.version or 'no database yet'}",
        f"data        {status.data}",
        f"socket      {status.socket}",
    ]
