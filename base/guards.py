"""Triggers that keep what is settled settled, against raw SQL and the admin too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pgtrigger
from django.db import models


class Immutable(pgtrigger.Trigger):
    """The primary key and these columns never change, whatever else an UPDATE does."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(self, *, name: str, fields: Sequence[str], message: str) -> None:
        self.fields, self.message = fields, message
        super().__init__(name=name)

    def get_func(self, model: type[models.Model]) -> str:
        changed = " or ".join(
            f"{_new(model, f)} is distinct from {_old(model, f)}" for f in with_key(model, self.fields)
        )
        return f"if {changed} then raise exception '{self.message}'; end if; return new;"


class WriteOnce(Immutable):
    """These columns may be set once, from null; after that they never change."""

    def get_func(self, model: type[models.Model]) -> str:
        changed = " or ".join(
            f"({_old(model, f)} is not null and {_new(model, f)} is distinct from {_old(model, f)})"
            for f in self.fields
        )
        return f"if {changed} then raise exception '{self.message}'; end if; return new;"


class Moves(pgtrigger.Trigger):
    """A state changes only along the allowed moves; a row may be inserted in any state."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(self, *, name: str, field: str, moves: Iterable[tuple[str, str]], message: str) -> None:
        """`message` may hold `{old}`, the state that was left."""
        self.field, self.moves, self.message = field, sorted(set(moves)), message
        super().__init__(name=name)

    def get_func(self, model: type[models.Model]) -> str:
        old, new = _old(model, self.field), _new(model, self.field)
        pairs = ", ".join(f"('{a}', '{b}')" for a, b in self.moves)
        message = self.message.replace("{old}", "%")
        arguments = f", {old}" if message != self.message else ""
        return (
            f"if {new} is distinct from {old} and ({old}, {new}) not in ({pairs}) then "
            f"raise exception '{message}'{arguments}; end if; return new;"
        )


class Frozen(pgtrigger.Trigger):
    """Once a row is in one of these states, these columns never change."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(
        self, *, name: str, field: str, states: Iterable[str], fields: Sequence[str], message: str
    ) -> None:
        self.field, self.states, self.fields, self.message = field, sorted(states), fields, message
        super().__init__(name=name)

    def get_func(self, model: type[models.Model]) -> str:
        states = ", ".join(f"'{state}'" for state in self.states)
        changed = " or ".join(f"{_new(model, f)} is distinct from {_old(model, f)}" for f in self.fields)
        return (
            f"if {_old(model, self.field)} in ({states}) and ({changed}) then "
            f"raise exception '{self.message}'; end if; return new;"
        )


def with_key(model: type[models.Model], fields: Sequence[str]) -> list[str]:
    """The fields with the primary key before them: by it other rows, logs and callers know the row, also where no foreign key holds it."""
    key = str(model._meta.pk.name)
    return [key, *(field for field in fields if field != key)]


def _column(model: type[models.Model], field: str) -> str:
    return str(model._meta.get_field(field).column)  # type: ignore[union-attr]


def _old(model: type[models.Model], field: str) -> str:
    return f'old."{_column(model, field)}"'


def _new(model: type[models.Model], field: str) -> str:
    return f'new."{_column(model, field)}"'
