"""The life of one embedded server: one supervisor at a time, everyone else just connects."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from base.dead_peers import CONNECT_SECONDS

from . import postmaster, processes
from .account import Account, server_account
from .binaries import Binaries, installed, usable_by
from .connection import DATABASE, Connection, connection_to
from .detached import start_supervisor
from .errors import EmbeddedPostgresError, explained
from .folders import ensure_folders
from .initialise import data_version, ensure_data
from .layout import PORT, Layout
from .lockfile import Holder, LockFile
from .postmaster import State
from .server import Server, settings_of

PR_SET_CHILD_SUBREAPER = 36
START_SECONDS = 300.0  # recovery after a crash may have to replay a gigabyte of log
STOP_SECONDS = 45.0
LOST = -1  # exit status of a server that we did not start


@dataclass(frozen=True)
class Status:
    """What is known of a server. `supervisor` is the pid of the process that watches it, `detached` whether that process
    exists for the server alone; `version` is the major version of the data ("18")."""

    state: State
    pid: int | None
    version: str | None
    data: Path
    socket: Path
    supervisor: int | None = None
    detached: bool = False

    @property
    def is_running(self) -> bool:
        return self.state is State.RUNNING


class Cluster:
    """The server whose files are in `folder`.

    `start` makes it a child of this process: it gets PostgreSQL's fast shutdown when the *thread* that called `start` ends,
    by kill -9 of this process too. `start_detached` gives it a supervisor of its own that outlives this process. Whoever
    is second, by either way, uses the first one's server.

    `settings` are PostgreSQL's own, on top of those of `server.settings_of`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_connections: int = 300,
        settings: Mapping[str, str] | None = None,
        binaries: Binaries | None = None,
    ) -> None:
        self.layout = Layout.at(folder)
        self.max_connections = max_connections
        self.settings = dict(settings or {})
        self._source = binaries
        self._supervision = LockFile(self.layout.supervisor_lock)
        self._detached = False
        self._server: Server | None = None

    @property
    def binaries(self) -> Binaries:
        """The installed programs, before it is known who can run them."""
        return self._source or installed()

    @property
    def owned(self) -> bool:
        """Whether this object supervises the server (also after the server died, until `close` or `stop`)."""
        return self._supervision.is_held

    def start(self, timeout: float = START_SECONDS, *, detached: bool = False) -> Status:
        """Return when the server answers: started as our child (`owned` is true then), or already run by another supervisor.

        Call it again after `poll` told of an end: it recovers what was killed, orphans and stale pid files included.
        Raises `EmbeddedPostgresError`; nothing of it is left running then. `timeout` in seconds. `detached` is what
        `status` tells others of this process.
        """
        if self._server is not None and self._server.poll() is None:
            return self.status()
        self._detached = detached or self._detached
        with explained(self.layout.folder):
            self._start(time.monotonic() + timeout)
        return self.status()

    def start_detached(self, timeout: float = START_SECONDS) -> Status:
        """As `start`, with a supervisor of its own that survives this process, ends by `stop` and restarts a killed server."""
        status = self.status()
        if not status.is_running:
            start_supervisor(self, timeout)
            status = self.status()
        return status

    def stop(self) -> None:
        """End the server, whoever started it: fast shutdown, then ever harder ones. Nothing happens if it does not run.

        A server that `bin/up` supervises is started by it again: end that one instead. Returns when all its processes are gone.
        """
        if self._server is not None or self.owned:
            self.close()
            return
        holder = self._supervision.holder()
        if holder and holder.detached:
            processes.send([holder.pid], signal.SIGTERM)
            self._await_end_of(holder)
        postmaster.end(self.layout)

    def close(self) -> None:
        """End the server if it is ours; leave one that another supervisor runs."""
        if self._server is None and not self.owned:
            return
        try:
            if self._server is not None:
                self._server.end()
            postmaster.end(self.layout)
        finally:
            self._server = None
            self._supervision.release()

    def poll(self) -> int | None:
        """None while the server runs, or while another supervisor cares for it; else its exit status (-1 if not ours).

        0 is the answer to a shutdown that somebody asked for.
        """
        if self._server is not None:
            return self._server.poll()
        if self._supervision.is_taken() or self.status().pid:
            return None
        return LOST

    def wait(self, timeout: float | None = None) -> int:
        """Until `poll` has an answer. Raises `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self._server is not None:
            return self._server.wait(timeout)
        if not processes.wait_until(
            lambda: self.poll() is not None, float("inf") if timeout is None else timeout
        ):
            raise subprocess.TimeoutExpired("postgres", timeout or 0)
        return LOST

    def status(self) -> Status:
        """Never starts, changes or waits for anything."""
        state, pid = postmaster.observe(self.layout)
        holder = self._supervision.holder()
        if pid is None and holder is not None:
            state = State.STARTING
        return Status(
            state=state,
            pid=pid,
            version=data_version(self.layout),
            data=self.layout.data,
            socket=self.layout.socket,
            supervisor=holder.pid if holder else None,
            detached=bool(holder and holder.detached),
        )

    def connection(self, dbname: str = DATABASE) -> Connection:
        """Where to connect, whether or not the server runs."""
        return connection_to(self.layout.folder, dbname)

    def ensure_database(self, name: str = DATABASE) -> Connection:
        """Create the database if it is missing; two callers at once are fine."""
        with psycopg.connect(
            **self.connection("postgres").parameters(), connect_timeout=CONNECT_SECONDS, autocommit=True
        ) as link:
            if link.execute("select 1 from pg_database where datname = %s", [name]).fetchone() is None:
                with suppress(
                    psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation
                ):  # another caller was first
                    link.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return self.connection(name)

    def psql_argv(self, *arguments: str, dbname: str = DATABASE) -> list[str]:
        """The command line of psql on this server, run as this process's account."""
        return [
            self.binaries.program("psql"),
            "-h",
            str(self.layout.run),
            "-p",
            str(PORT),
            "-U",
            self.connection().user,
            "-d",
            dbname,
            *arguments,
        ]

    def _start(self, deadline: float) -> None:
        account = server_account(self.layout.data)
        ensure_folders(self.layout, account)
        was_owned = self.owned
        if not self._supervise_or_find_running(deadline):
            return
        try:
            self._supervision.sign(Holder.current(detached=self._detached))
            self._server = self._start_child(account, deadline)
        except BaseException:
            if not was_owned:
                self._supervision.release()
            raise

    def _supervise_or_find_running(self, deadline: float) -> bool:
        """True with the supervision in our hands; False if another supervisor's server answers."""
        while not self._supervision.acquire():
            if self.status().is_running:
                return False
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    "held_elsewhere",
                    f"Another process holds {self.layout.supervisor_lock}, but its server does not answer.",
                )
            time.sleep(processes.POLL_SECONDS)
        return True

    def _start_child(self, account: Account, deadline: float) -> Server:
        postmaster.end(self.layout)
        binaries, version = usable_by(account, self.binaries, self.layout.folder)
        ensure_data(self.layout, account, binaries, version)
        postmaster.remove_stale_pid_file(self.layout)
        # Orphans of a killed server come to us, to be reaped.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        server = self._launch(account, binaries)
        try:
            server.wait_until_ready(max(deadline - time.monotonic(), 1.0))
        except BaseException:
            server.end()
            raise
        return server

    def _launch(self, account: Account, binaries: Binaries) -> Server:
        lock = LockFile(self.layout.server_lock)
        if not processes.wait_until(lock.acquire, 1.0):
            raise EmbeddedPostgresError(
                "held_elsewhere", f"Another process uses the database in {self.layout.data}."
            )
        try:
            return Server.launch(
                self.layout,
                account,
                binaries,
                settings_of(self.layout, self.max_connections, self.settings),
                lock,
            )
        finally:
            lock.release()

    def _await_end_of(self, holder: Holder) -> None:
        if not processes.wait_until(lambda: not holder.is_alive, STOP_SECONDS):
            raise EmbeddedPostgresError(
                "will_not_stop", f"The supervisor of the database (process {holder.pid}) does not end."
            )
        with suppress(ChildProcessError):  # it is ours to bury if this process is a subreaper
            os.waitpid(holder.pid, os.WNOHANG)
