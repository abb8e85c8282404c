"""What is looked at while the load goes on: memory, files and threads of every part, rows and sizes of every table."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

import psutil
import psycopg
from psycopg import sql

from base.embedded_postgres import Connection

MIB = 1 << 20
ALONE = frozenset({"provider", "supervisor"})  # their children are boxes, or parts of their own


@dataclass(frozen=True)
class PartSample:
    """One part with its children: memory of its own in MiB, open files, threads."""

    memory: float
    files: int
    threads: int


@dataclass(frozen=True)
class TableSample:
    rows: int
    size: int  # bytes, indexes included


@dataclass
class Samples:
    """Everything that was seen, with the seconds since the beginning and the actions done by then."""

    parts: dict[str, list[tuple[float, PartSample]]] = field(default_factory=dict)
    tables: list[tuple[float, int, dict[str, TableSample]]] = field(default_factory=list)
    pids: dict[str, set[int]] = field(default_factory=dict)  # main processes that each part has had
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def take_parts(self, leaders: dict[str, int]) -> None:
        for name, pid in leaders.items():
            self.pids.setdefault(name, set()).add(pid)
            sample = part(pid, alone=name in ALONE)
            if sample is not None:
                self.parts.setdefault(name, []).append((self.seconds, sample))

    def take_tables(self, database: Connection, actions: int) -> None:
        self.tables.append((self.seconds, actions, tables(database)))

    def second_half(self, name: str) -> list[tuple[float, PartSample]]:
        taken = self.parts[name]
        return [sample for sample in taken if sample[0] >= taken[-1][0] / 2]


def part(pid: int, *, alone: bool) -> PartSample | None:
    """None if it has just ended. Memory that processes share is nobody's here: what grows is their own."""
    try:
        leader = psutil.Process(pid)
        family = [leader] if alone else [leader, *leader.children(recursive=True)]
    except psutil.Error:
        return None
    memory = files = threads = 0
    for process in family:
        try:
            memory += process.memory_full_info().uss
            files += process.num_fds()
            threads += process.num_threads()
        except psutil.Error:
            continue
    return PartSample(memory / MIB, files, threads)


def tables(database: Connection) -> dict[str, TableSample]:
    with psycopg.connect(**database.parameters(), autocommit=True) as link:
        names = link.execute(
            "select tablename, pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass) from pg_tables"
            " where schemaname = 'public' order by 1"
        ).fetchall()
        count = sql.SQL("select count(*) from {}")
        return {
            name: TableSample(int(link.execute(count.format(sql.Identifier(name))).fetchone()[0]), size)  # type: ignore[index]
            for name, size in names
        }


def slope(points: list[tuple[float, float]]) -> float:
    """Growth a second, as the median over all pairs of points, so that single peaks do not count (Theil and Sen)."""
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for index, earlier in enumerate(points)
        for later in points[index + 1 :]
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) if slopes else 0.0
