"""What is forgotten, when, and how: in short statements, the oldest first. Ledger rows never are.

An app lists its rules in its `retention.py`; `manage.py prune` and its scheduled task carry all of them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pgtrigger
from django.conf import settings
from django.db import connection

from base.conf import resolve, setting

BATCH = 1000


@dataclass(frozen=True)
class RetentionSettings:
    """The `RETENTION` family: days for which rows are kept that nobody needs to run the installation. 0: for ever."""

    history_days: int = setting(
        400, "RETENTION_HISTORY_DAYS", "Days that the history of changes is kept. 0: for ever.", minimum=0
    )
    event_days: int = setting(
        400,
        "RETENTION_EVENT_DAYS",
        "Days that what reconciliation noticed is kept after it was handled. 0: for ever.",
        minimum=0,
    )
    delivery_days: int = setting(
        7,
        "RETENTION_DELIVERY_DAYS",
        "Days that the ids of the provider's deliveries are kept, by which repeated ones are known. 0: for ever.",
        minimum=0,
    )
    webhook_days: int = setting(
        30,
        "RETENTION_WEBHOOK_DAYS",
        "Days that what webhooks were told is kept after it ended, and can be replayed. 0: for ever.",
        minimum=0,
    )
    task_days: int = setting(
        14, "RETENTION_TASK_DAYS", "Days that results of scheduled tasks are kept. 0: for ever.", minimum=0
    )
    heartbeat_days: int = setting(
        7,
        "RETENTION_HEARTBEAT_DAYS",
        "Days that signs of life of processes long gone are kept. 0: for ever.",
        minimum=0,
    )
    notice_days: int = setting(
        62,
        "RETENTION_NOTICE_DAYS",
        "Days that it is kept which spent budgets were reported. 0: for ever.",
        minimum=0,
    )


def retention() -> RetentionSettings:
    """The settings in force now. Raises ImproperlyConfigured for an unknown name or a value out of bounds."""
    return resolve(RetentionSettings, settings.RETENTION)


@dataclass(frozen=True)
class Rule:
    """Rows of one table that are forgotten.

    `old` is SQL about a row called `r`, with `%(days)s`. `days` tells after how many; 0 means never. With `grows_by_key` the
    keys rise with the time, and only the first of them are looked at. `guard` names the trigger that keeps others from deleting.
    """

    what: str
    table: str
    key: str
    old: str
    days: Callable[[], int]
    grows_by_key: bool = False
    guard: str | None = None

    def count(self) -> int:
        """How many rows `forget` would delete now."""
        days = self.days()
        return self._execute(f"select count(*) from {self.table} r where {self.old}", days) if days else 0  # noqa: S608

    def forget(self) -> int:
        """Delete what is old, in batches that are each committed; returns how many rows."""
        days, deleted = self.days(), 0
        while days:
            with self._unguarded():
                batch = self._execute(self._delete, days)
            deleted += batch
            if batch < BATCH:
                break
        return deleted

    @property
    def _delete(self) -> str:
        chosen = (
            f"select r.{self.key} from (select * from {self.table} order by {self.key} limit {BATCH}) r where {self.old}"  # noqa: S608
            if self.grows_by_key
            else f"select r.{self.key} from {self.table} r where {self.old} limit {BATCH} for update skip locked"  # noqa: S608
        )
        return f"delete from {self.table} where {self.key} in ({chosen})"  # noqa: S608 - constants of ours

    def _unguarded(self) -> AbstractContextManager[None]:
        return pgtrigger.ignore(self.guard) if self.guard else nullcontext()

    def _execute(self, sql: str, days: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                sql.replace("%(days)s", str(int(days)))
            )  # guards of triggers allow no named parameters
            if cursor.description is None:
                return int(cursor.rowcount)
            row = cursor.fetchone()
            return int(row[0]) if row else 0


def before(column: str) -> str:
    """SQL: the time in `column` is more than `%(days)s` days ago."""
    return f"r.{column} < clock_timestamp() - make_interval(days => %(days)s)"


def forget(rules: Iterable[Rule]) -> int:
    """Carry out these rules; returns how many rows were deleted."""
    return sum(rule.forget() for rule in rules)
