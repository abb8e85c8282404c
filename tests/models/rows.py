"""A row in the hands of writers of every kind, against a model of what may become of it.

Hypothesis calls the product's own writers and raw SQL in any order. What the model allows must succeed, what it does not must be
refused, by the database itself where the SQL is raw; after every step the row is what the model says.
"""

from __future__ import annotations

import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db import DatabaseError, IntegrityError, connection, models, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from accounts.services import upsert_github_user
from openagents_site.webhooks.models import Event, Subscription
from tests.models.tables import Columns, Moves, Shapes

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
EXAMPLES, STEPS = (1000, 50) if THOROUGH else (25, 20)


class OneRow(RuleBasedStateMachine):
    """Everything of an example happens in a savepoint that is rolled back. `model` is the table, `row_id` its row.

    A row that differs from it in `lawful` may be beside it; with one of `misshapen` besides, or with its own value in one of
    `unique`, it may not. `misshapen` and `unique` name the constraint that says so.
    """

    model: ClassVar[type[models.Model]]
    lawful: ClassVar[Columns]
    misshapen: ClassVar[Shapes]
    unique: ClassVar[Mapping[str, str]] = {}
    shape_holds: ClassVar[bool] = False
    row_id: Any

    def __init__(self) -> None:
        super().__init__()
        self._example = transaction.atomic()
        self._example.__enter__()
        with connection.cursor() as cursor:
            cursor.execute("set constraints all immediate")

    def teardown(self) -> None:
        """The example is over: its history is looked at as a whole, what it may not have come to is tried, and everything is undone."""
        try:
            if hasattr(self, "row_id"):
                self.assert_history()
                self.assert_shape()
                self.assert_guarded()
        finally:
            transaction.set_rollback(True)
            self._example.__exit__(None, None, None)

    def assert_history(self) -> None:
        """What was written down of the row's way is a way that it may go, and ends where it is."""

    def assert_guarded(self) -> None:
        """Nothing of all that is refused of the row as it is now is taken. Few examples are as long as the rules are many: a guard
        must not be missed for want of luck."""

    @property
    def table(self) -> str:
        return self.model._meta.db_table

    def row(self) -> Any:
        """The row as it is now."""
        return self.model._default_manager.get(pk=self.row_id)

    def put(self, column: str, value: Any) -> str | None:
        """Write one column by raw SQL. None if it was taken, else why it was not; nothing has changed then."""
        return attempted(f'update {self.table} set "{column}" = %s where id = %s', value, self.row_id)

    def taken(self, column: str, values: Iterable[str]) -> set[str]:
        """Those of the values that the column would take now; nothing has changed."""
        found = set()
        for value in values:
            with undone():
                if self.put(column, value) is None:
                    found.add(value)
        return found

    def probe(self, column: str) -> str | None:
        """Write another value than the column has, and take it back. None if that was taken, else why it was not."""
        field = next(field for field in self.model._meta.concrete_fields if field.column == column)
        with undone():
            value = another(field, getattr(self.row(), field.attname))
            return self.put(column, value)

    def assert_kept(self, columns: Iterable[str]) -> None:
        """No other value is taken for any of these columns, and it is a trigger that says so."""
        for column in columns:
            why = self.probe(column)
            assert why is not None, f"{column} was changed"
            assert "RaiseException" in why, f"{column}: {why}"

    def assert_said_once(self, columns: Iterable[str]) -> None:
        """What any of these columns says already, it says for ever, also of a row that goes on."""
        row = self.row()
        self.assert_kept([column for column in columns if getattr(row, column) is not None])

    def add_like(self, columns: Columns, same: str | None = None) -> str | None:
        """Add another row that differs from this one in these columns and those of `lawful` but `same`. None if it was taken, else
        why it was not."""
        differs = {"id": uuid.uuid4(), **self.lawful, **columns}
        differs = {column: value for column, value in differs.items() if column != same}
        return attempted(
            f"insert into {self.table} select other.* from {self.table} this,"
            " jsonb_populate_record(this, %s::jsonb) other where this.id = %s",
            json.dumps(differs, default=str),
            self.row_id,
        )

    def assert_shape(self) -> None:
        """What no row may be like, no row is made like, and what is of one row, no other has. However far the row came is nothing to
        that: one example is enough."""
        if self.shape_holds:
            return
        with undone():
            assert self.add_like({}) is None
        for name, columns in self.misshapen:
            with undone():
                why = self.add_like(columns)
            assert f'check constraint "{name}"' in str(why), (name, list(columns), why)
        for name, column in self.unique.items():
            with undone():
                why = self.add_like({}, same=column)
            assert f'unique constraint "{name}"' in str(why), (name, column, why)
        type(self).shape_holds = True

    def assert_stays(self) -> None:
        """The row can neither be deleted nor lose its table."""
        kept = attempted(f"delete from {self.table} where id = %s", self.row_id)
        assert "Cannot delete rows" in str(kept), kept
        why = attempted(f"truncate {self.table}")
        assert why is not None
        assert "referenced in a foreign key" in why, why


class EndingRow(OneRow):
    """A row whose `state` ends once, with one of `ends`. It keeps the columns in `identity` for ever, and those in `story` from
    its end on."""

    ends: ClassVar[frozenset[str]]
    identity: ClassVar[Sequence[str]]
    story: ClassVar[Sequence[str]]
    state: str
    account: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, as the model has it."""
        return self.state in self.ends

    @rule(data=st.data())
    def keeps_its_identity(self, data: st.DataObject) -> None:
        self.assert_kept([data.draw(st.sampled_from(self.identity))])

    @precondition(lambda self: self.is_over)
    @rule(data=st.data())
    def keeps_its_account(self, data: st.DataObject) -> None:
        self.assert_kept([data.draw(st.sampled_from(self.story))])

    def assert_guarded(self) -> None:
        self.assert_kept(self.identity)
        if self.is_over:
            self.assert_kept(self.story)

    def assert_told(self, noun: str, states: Sequence[str]) -> None:
        """Whoever listens is told of each of these states once, in the order in which they came."""
        assert events_of(self.row_id) == [f"{noun}.{state}" for state, _ in itertools.groupby(states)]

    def assert_same_account(self) -> None:
        """What was first seen of its end is what is there now."""
        if self.is_over:
            row = self.row()
            account = {column: getattr(row, column) for column in self.story}
            self.account = self.account or account
            assert account == self.account


@contextmanager
def without_trigger(table: str, name: str) -> Iterator[None]:
    """What holds while the trigger is gone; all that is written within is taken back, and the trigger is there again."""
    with undone():
        found = connection.cursor()
        found.execute(
            "select tgname from pg_trigger where tgrelid = %s::regclass and tgname like %s",
            [table, f"pgtrigger_{name}_%"],
        )
        ((trigger,),) = found.fetchall()
        found.execute(f'alter table {table} disable trigger "{trigger}"')
        yield


class undone:
    """What is written within is taken back."""

    def __enter__(self) -> None:
        self._savepoint = transaction.savepoint()

    def __exit__(self, *_: object) -> None:
        transaction.savepoint_rollback(self._savepoint)


@contextmanager
def unreferenced() -> Iterator[None]:
    """Rows may refer to rows that are not there yet; all that is written within is taken back, and they may not again."""
    with undone():
        # Not by `attempted`: PostgreSQL gives the mode back only of the very savepoint in which it was set.
        connection.cursor().execute("set constraints all deferred")
        yield


def attempted(statement: str, *values: Any) -> str | None:
    """Execute it. None if the database took it, else the kind and the words of its refusal."""

    def execute() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)

    return refused(execute)


def refused(write: Callable[[], object]) -> str | None:
    """Write. None if the database took it, else the kind and the words of its refusal."""
    try:
        with transaction.atomic():
            write()
    except (DatabaseError, IntegrityError) as error:
        return f"{type(error.__cause__).__name__}: {error}"
    return None


def another(field: models.Field[Any, Any], value: Any) -> Any:
    """A value that the column's type takes, and that is not the one it has."""
    if field.choices:
        return next(str(choice) for choice, _ in field.choices if str(choice) != str(value))
    kind = (field.target_field if field.is_relation else field).get_internal_type()  # type: ignore[attr-defined]
    if "Integer" in kind or "Auto" in kind:
        return (value or 0) + 7
    if kind == "BinaryField":
        return b"another"
    texts = {
        "BooleanField": str(not value).lower(),
        "JSONField": '{"another": true}',
        "DateTimeField": "2001-01-01T00:00:00Z",
        "UUIDField": "00000000-0000-4000-8000-000000000000",
    }
    return texts.get(kind, "another")


def check(machine: type[OneRow], **given: Any) -> None:
    """Let Hypothesis look for an order of calls after which the row is not what the model says. `given`: what all examples share."""
    listener = upsert_github_user(github_id=99, github_login="listener")
    Subscription.objects.create(owner=listener, url="https://hooks.invalid/", sealed_secret=b"sealed")
    made = type(machine.__name__, (machine,), given)
    budget = settings(
        max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
    )  # fmt: skip
    run_state_machine_as_test(made, settings=budget)


def history_of(table: str, column: str, row_id: Any) -> list[str]:
    """The states of a row in the order in which they were written down."""
    with connection.cursor() as cursor:
        cursor.execute(f"select {column} from {table} where pgh_obj_id = %s order by pgh_id", [row_id])
        return [state for (state,) in cursor.fetchall()]


def events_of(row_id: Any) -> list[str]:
    """What whoever listens is told of a row, in the order in which it happened."""
    return list(
        Event.objects.filter(object_id=row_id).order_by("occurred_at").values_list("event_type", flat=True)
    )


def assert_legal(states: Sequence[str], moves: Moves, first: str, last: str) -> None:
    """The way begins and ends like this, and each move is one of `moves`; the same again is none."""
    assert (states[0], states[-1]) == (first, last)
    assert [
        pair for pair in itertools.pairwise(states) if pair[0] != pair[1] and pair[1] not in moves[pair[0]]
    ] == []
