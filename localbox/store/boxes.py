"""Rows of boxes: reads, and the guarded moves from state to state."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import states
from ..runtime.interface import SupervisorRecord

_LAST = 1 << 62  # beyond every `seq`


@dataclass(frozen=True)
class BoxRow:
    seq: int
    id: str
    name: str
    state: str
    size: str
    ttl_seconds: int | None
    archive_after: float | None
    env: dict[str, str]
    no_env: bool
    setup_script: str | None
    setup_status: str | None
    setup_error: str | None
    setup_process_id: int | None
    subdomain: str | None
    error: str | None
    uid: int | None
    origin_id: str | None
    copied: bool
    supervisor: SupervisorRecord | None
    saved_at: float | None
    pruned_at: float | None
    created_at: float
    updated_at: float
    deleted_at: float | None
    removed_at: float | None


def _row(record: sqlite3.Row) -> BoxRow:
    values: dict[str, Any] = dict(record)
    values["env"] = json.loads(values["env"])
    values["no_env"], values["copied"] = bool(values["no_env"]), bool(values["copied"])
    if values["supervisor"] is not None:
        values["supervisor"] = SupervisorRecord(**json.loads(values["supervisor"]))
    return BoxRow(**values)


def insert(connection: sqlite3.Connection, **columns: Any) -> None:
    names = ", ".join(columns)
    marks = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO boxes ({names}) VALUES ({marks})", tuple(columns.values()))  # noqa: S608 - names are ours


def get(connection: sqlite3.Connection, box_id: str) -> BoxRow | None:
    """The box unless it was deleted."""
    found = connection.execute(
        "SELECT * FROM boxes WHERE id = ? AND deleted_at IS NULL", (box_id,)
    ).fetchone()
    return _row(found) if found else None


def get_even_deleted(connection: sqlite3.Connection, box_id: str) -> BoxRow | None:
    found = connection.execute("SELECT * FROM boxes WHERE id = ?", (box_id,)).fetchone()
    return _row(found) if found else None


def page(
    connection: sqlite3.Connection, *, wanted: Sequence[str], after: int | None, ascending: bool, limit: int
) -> list[BoxRow]:
    """At most `limit` boxes in order of creation, starting behind the one whose `seq` is `after`.

    Each state is read by itself, in the order of its index, and the parts are merged: a page costs what is on it,
    however many boxes there have been.
    """
    parts = [_page_of(connection, state, after, ascending, limit) for state in set(wanted or states.MOVES)]
    rows = sorted(itertools.chain(*parts), key=lambda row: row.seq, reverse=not ascending)
    return rows[:limit]


def _page_of(
    connection: sqlite3.Connection, state: str, after: int | None, ascending: bool, limit: int
) -> list[BoxRow]:
    before, order = (">", "ASC") if ascending else ("<", "DESC")
    edge = after if after is not None else (-1 if ascending else _LAST)
    query = f"SELECT * FROM boxes WHERE deleted_at IS NULL AND state = ? AND seq {before} ? ORDER BY seq {order} LIMIT ?"  # noqa: S608 - words of ours
    return [_row(record) for record in connection.execute(query, (state, edge, limit)).fetchall()]


def in_states(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[BoxRow]:
    """Boxes in these states, those with the earliest automatic stop first."""
    marks = ", ".join("?" * len(wanted))
    query = f"SELECT * FROM boxes WHERE deleted_at IS NULL AND state IN ({marks}) ORDER BY archive_after"  # noqa: S608 - marks only
    return [_row(record) for record in connection.execute(query, tuple(wanted)).fetchall()]


def count_active(connection: sqlite3.Connection) -> int:
    marks = ", ".join("?" * len(states.ACTIVE))
    query = f"SELECT count(*) FROM boxes WHERE deleted_at IS NULL AND state IN ({marks})"  # noqa: S608 - marks only
    return int(connection.execute(query, states.ACTIVE).fetchone()[0])


def past_their_time(connection: sqlite3.Connection, now: float) -> list[str]:
    """Ids of boxes that are up or coming up beyond their automatic stop."""
    marks = ", ".join("?" * len(states.ACTIVE))
    query = f"SELECT id FROM boxes WHERE deleted_at IS NULL AND archive_after <= ? AND state IN ({marks})"  # noqa: S608 - marks only
    return [record["id"] for record in connection.execute(query, (now, *states.ACTIVE)).fetchall()]


def leaving(connection: sqlite3.Connection) -> list[BoxRow]:
    """Deleted and pruned boxes of which something is still there."""
    query = (
        "SELECT * FROM boxes WHERE removed_at IS NULL AND (deleted_at IS NOT NULL OR pruned_at IS NOT NULL)"
    )
    return [_row(record) for record in connection.execute(query).fetchall()]


def with_files(connection: sqlite3.Connection) -> list[BoxRow]:
    """Every box of which something is still there, whatever its state."""
    return [
        _row(record)
        for record in connection.execute("SELECT * FROM boxes WHERE removed_at IS NULL").fetchall()
    ]


def prune(connection: sqlite3.Connection, *, before: float, now: float) -> list[str]:
    """Give up the files of boxes that have been down since `before` and that nobody is copying; returns their ids."""
    query = """
        UPDATE boxes INDEXED BY boxes_with_files SET pruned_at = ? WHERE deleted_at IS NULL AND state IN ('archived', 'error')
        AND removed_at IS NULL AND pruned_at IS NULL AND updated_at <= ? AND id NOT IN (
            SELECT origin_id FROM boxes WHERE copied = 0 AND removed_at IS NULL AND state = 'cloning'
        ) RETURNING id
    """
    return [record["id"] for record in connection.execute(query, (now, before)).fetchall()]


def forget_deleted(connection: sqlite3.Connection, before: float) -> None:
    """Drop the rows of boxes that were deleted and removed before then, with their meters and operations."""
    gone = "SELECT id FROM boxes WHERE deleted_at <= ? AND removed_at IS NOT NULL"
    connection.execute(f"DELETE FROM deletions WHERE box_id IN ({gone})", (before,))  # noqa: S608 - a constant
    connection.execute("DELETE FROM boxes WHERE deleted_at <= ? AND removed_at IS NOT NULL", (before,))


def copying_from(connection: sqlite3.Connection, box_id: str) -> list[str]:
    """Ids of forks that still need this box's files."""
    query = (
        "SELECT id FROM boxes WHERE copied = 0 AND removed_at IS NULL AND origin_id = ? AND state = 'cloning'"
    )
    return [record["id"] for record in connection.execute(query, (box_id,)).fetchall()]


def uids_taken(connection: sqlite3.Connection) -> set[int]:
    query = "SELECT uid FROM boxes WHERE uid IS NOT NULL"
    return {record["uid"] for record in connection.execute(query).fetchall()}


def move(connection: sqlite3.Connection, box_id: str, target: str, *, now: float, **columns: Any) -> bool:
    """Move a box to `target` if the table of moves allows it from where it is; False if it does not, or is deleted."""
    allowed = states.sources(target)
    changes = ", ".join(f"{name} = ?" for name in ("state", "updated_at", *columns))
    marks = ", ".join("?" * len(allowed))
    query = f"UPDATE boxes SET {changes} WHERE id = ? AND deleted_at IS NULL AND state IN ({marks})"  # noqa: S608 - names are ours
    values = (target, now, *columns.values(), box_id, *allowed)
    return connection.execute(query, values).rowcount == 1


def update(connection: sqlite3.Connection, box_id: str, **columns: Any) -> bool:
    """Change columns other than the state; False if the box is gone."""
    changes = ", ".join(f"{name} = ?" for name in columns)
    query = f"UPDATE boxes SET {changes} WHERE id = ?"  # noqa: S608 - names are ours
    return connection.execute(query, (*columns.values(), box_id)).rowcount == 1


def update_setup(connection: sqlite3.Connection, box_id: str, **columns: Any) -> bool:
    """Change the progress of a setup script that has not ended, in a box that is up; False if it is not."""
    changes = ", ".join(f"{name} = ?" for name in columns)
    query = (
        f"UPDATE boxes SET {changes} WHERE id = ? AND state = 'ready' "  # noqa: S608 - names are ours
        "AND deleted_at IS NULL AND setup_status IN ('pending', 'running')"
    )
    return connection.execute(query, (*columns.values(), box_id)).rowcount == 1


def record_text(record: SupervisorRecord) -> str:
    return json.dumps(asdict(record))


def env_text(env: dict[str, str]) -> str:
    return json.dumps(env)
