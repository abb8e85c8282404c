"""Two machines of one installation: web, worker and scheduler each, one database, one provider.

As root each is a network namespace of its own, reached over a link; otherwise they are process groups. Their state folders
are their own in any case, and so are their roads to the database and to the provider.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import psycopg
from psycopg import sql

from base.embedded_postgres import Connection
from tests.faults.installation import Installation, Owner, Part
from tests.localbox.server import LocalboxServer
from tests.several.relay import Relay
from tests.waiting import eventually

SETTINGS = {
    "BOX_RECONCILIATION_INTERVAL_MS": "1000",
    "RUN_POLL_INTERVAL_MS": "500",
    "WEB_THREADS": "32",
    "WORK_MODEL": "slow",
}
WEB_PORT = 8000
# Written by the database itself, whoever it was: each taking of a slot, each firing of a schedule, each task put into the queue,
# each sign of life of a scheduled task.
WITNESSES = """
create table seen (what text, name text, detail text, at timestamptz default clock_timestamp());
create function saw() returns trigger language plpgsql as $$ begin
    if tg_table_name = 'schedule_slots' then
        if new.generation <> old.generation then
            insert into seen values ('pass', new.name, new.generation || ' by ' || coalesce(new.lease_owner, -1)); end if;
    elsif tg_table_name = 'django_q_schedule' then
        if new.next_run > old.next_run then
            insert into seen values ('firing', new.name, old.next_run::text); end if;
    elsif tg_table_name = 'django_q_ormq' then insert into seen values ('task', new.key, new.id::text);
    else insert into seen values ('sign of life', new.name, ''); end if;
    return null; end $$;
create trigger saw after update on schedule_slots for each row execute function saw();
create trigger saw after update on django_q_schedule for each row execute function saw();
create trigger saw after insert on django_q_ormq for each row execute function saw();
create trigger saw after insert or update on process_heartbeats for each row execute function saw();
"""


@dataclass
class Machine(Installation):
    """One of the two. `prefix` runs a command there; `address` is where it is reached."""

    name: str = ""
    prefix: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    to_database: Relay | None = None
    to_provider: Relay | None = None
    to_model: Relay | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    def add(self, name: str, *arguments: str, **settings: str) -> Part:
        command = [*self.prefix, sys.executable, *arguments]
        part = Part(name, command, self.environment() | settings, self.folder / f"{name}.log")
        self.parts[name] = part
        part.ensure()
        return part

    def start(self) -> None:
        """All parts, at once."""
        self.add_web()
        self.add("worker", "-m", "tests.several.hurried")
        self.add("scheduler", "manage.py", "qcluster")

    def is_at_work(self) -> bool:
        """Whether the worker and the scheduler have said so. Web is awaited by asking it."""
        worker, scheduler = self.parts["worker"].said(), self.parts["scheduler"].said()
        return "worker_started" in worker and "running" in scheduler

    def kill9(self) -> None:
        """Everything of it at once, as a power cut would."""
        for part in self.parts.values():
            part.kill9()

    def worker_number(self) -> int:
        """The sign of life that its worker holds."""
        lines = [line for line in self.parts["worker"].said().splitlines() if "worker_started" in line]
        return int(json.loads(lines[-1])["worker"])


@dataclass
class Pair:
    """Both, and what they share."""

    machines: list[Machine]
    database: Connection
    provider: LocalboxServer
    owners: list[Owner] = field(default_factory=list)

    def rows(self, query: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        with psycopg.connect(**self.database.parameters(), autocommit=True) as link:
            answer = link.execute(query, parameters)  # type: ignore[call-overload]
            return answer.fetchall() if answer.description else []

    def requests(self) -> list[tuple[str, str]]:
        """Everything that the provider was asked for, by both."""
        roads = [machine.to_provider for machine in self.machines]
        return [request for road in roads if road is not None for request in road.requests]


@cache
def namespaces_work() -> bool:
    """Whether this process may make network namespaces."""
    name = f"oab-try-{os.getpid()}"
    try:
        if os.geteuid() != 0 or subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
            return False
        return subprocess.run(["ip", "netns", "del", name], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class Place:
    """Where a machine is: how commands get there, its address, and that of the host as it sees it."""

    prefix: tuple[str, ...]
    address: str
    host: str


@contextmanager
def place(number: int) -> Iterator[Place]:
    """A network namespace with a link to the host, where that is possible; else this host itself."""
    if not namespaces_work():
        yield Place((), "127.0.0.1", "127.0.0.1")
        return
    name = f"oab{number}-{os.getpid()}"
    outside, inside = f"o{number}h{os.getpid()}", f"o{number}n{os.getpid()}"
    third, fourth = os.getpid() % 64 + 64 * number, 1 + 4 * (os.getpid() // 64 % 60)
    host, address = f"10.213.{third}.{fourth}", f"10.213.{third}.{fourth + 1}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
        _ip("addr", "add", f"{host}/30", "dev", outside)
        _ip("link", "set", outside, "up")
        for words in (
            ["addr", "add", f"{address}/30", "dev", inside],
            ["link", "set", inside, "up"],
            ["link", "set", "lo", "up"],
        ):
            _ip("-n", name, *words)
        yield Place(("ip", "netns", "exec", name), address, host)
    finally:
        _ip("netns", "del", name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextmanager
def two_machines(template: Connection, model_port: int) -> Iterator[Pair]:
    """Both at work, on a copy of `template`. `model_port` is that of a model on this host."""
    with ExitStack() as stack:
        database = stack.enter_context(copy_of(template))
        with psycopg.connect(**database.parameters()) as link:
            link.execute(WITNESSES)
        provider = stack.enter_context(LocalboxServer(settings={"log_level": "warning"}))
        shared = {
            "secret_key": secrets.token_urlsafe(48),
            "settings": {"BOX_OWNERSHIP_MARKER": f"pair-{os.getpid()}"},
        }
        pair = Pair([], database, provider)
        for number in range(2):
            where = stack.enter_context(place(number))
            pair.machines.append(
                stack.enter_context(_machine(stack, pair, where, number, model_port, shared))
            )
        first = pair.machines[0]
        first.run("manage.py", "setup_schedules")
        for machine in pair.machines:
            machine.start()
        pair.owners = first.owners(6)
        for machine in pair.machines:
            machine.await_web()
            eventually(machine.is_at_work)
        yield pair
        for machine in pair.machines:
            machine.kill9()


def _machine(
    stack: ExitStack, pair: Pair, where: Place, number: int, model_port: int, shared: dict[str, Any]
) -> Machine:
    socket = f"{pair.database.host}/.s.PGSQL.{pair.database.port}"
    is_local = pair.database.host.startswith("/")
    target = socket if is_local else (pair.database.host, pair.database.port)
    to_database = stack.enter_context(Relay(where.host, target))
    to_provider = stack.enter_context(Relay(where.host, ("127.0.0.1", pair.provider.port)))
    to_model = stack.enter_context(Relay(where.host, ("127.0.0.1", model_port)))
    machine = Machine(
        replace(pair.database, host=where.host, port=to_database.port, peer=""),
        pair.provider,
        name="ab"[number],
        secret_key=shared["secret_key"],
        prefix=where.prefix,
        address=where.address,
        to_database=to_database,
        to_provider=to_provider,
        to_model=to_model,
    )
    if where.prefix:
        machine.port = WEB_PORT  # the same on both
    machine.settings = SETTINGS | shared["settings"] | {
        "WEB_BIND": f"{where.address}:{machine.port}",
        "ALLOWED_HOSTS": where.address,
        "BOX_API_BASE_URL": f"http://{where.host}:{to_provider.port}/api/box/v1",
        "FORGE_STORAGE_ROOT": str(pair.provider.state_dir / "repositories"),
        "WORK_MODEL_BASE_URL": f"http://{where.host}:{to_model.port}/v1",
    }  # fmt: skip
    return machine


@contextmanager
def copy_of(template: Connection) -> Iterator[Connection]:
    """A database like this one, to which nothing may be connected; dropped afterwards."""
    database = replace(template, dbname=f"{template.dbname}_pair_{os.getpid()}")
    with psycopg.connect(**replace(template, dbname="postgres").parameters(), autocommit=True) as admin:
        name, like = sql.Identifier(database.dbname), sql.Identifier(template.dbname)
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(name))
        admin.execute(sql.SQL("create database {} template {}").format(name, like))
        try:
            yield database
        finally:
            admin.execute(sql.SQL("drop database if exists {} with (force)").format(name))
