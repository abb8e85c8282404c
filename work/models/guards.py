"""The triggers of jobs and steps. PostgreSQL fires them in the order of their names, and the order decides which of two
wrongs a writer is told of: whose it is, then what it is, then what state it is in, then the check constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pgtrigger
from django.db import models

from base.guards import with_key


class JobScope(pgtrigger.Trigger):
    """A job belongs to the owner of its conversation; a delegation goes to a machine of that owner's account, with the
    authority that the machine has when the job is made."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: type[models.Model]) -> str:
        return """
            if TG_OP = 'INSERT' or NEW.conversation_id is distinct from OLD.conversation_id
                    or NEW.owner_visitor_id is distinct from OLD.owner_visitor_id then
                if not exists (select 1 from conversations c
                        where c.id = NEW.conversation_id and c.visitor_id = NEW.owner_visitor_id) then
                    raise exception 'work job conversation owner mismatch';
                end if;
            end if;
            if NEW.kind = 'delegation' and (TG_OP = 'INSERT' or NEW.kind is distinct from OLD.kind
                    or NEW.machine_id is distinct from OLD.machine_id
                    or NEW.owner_visitor_id is distinct from OLD.owner_visitor_id) then
                if not exists (select 1 from machines m join visitors v on v.user_id = m.user_id
                        where m.id = NEW.machine_id and v.id = NEW.owner_visitor_id) then
                    raise exception 'work job machine owner mismatch';
                end if;
            end if;
            if NEW.kind = 'delegation' and TG_OP = 'INSERT' then
                if not exists (select 1 from machines m where m.id = NEW.machine_id
                        and NEW.authority_snapshot ->> 'machine_tier' is not distinct from m.tier
                        and NEW.authority_snapshot -> 'roots' is not distinct from m.roots
                        and NEW.authority_snapshot ->> 'machine_name' is not distinct from m.name) then
                    raise exception 'work job machine authority snapshot mismatch';
                end if;
            end if;
            return NEW;
        """


class JobTransition(pgtrigger.Trigger):
    """What a job is never changes; its status moves along its table; what has ended stays as it is."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(
        self,
        *,
        name: str,
        identity: Sequence[str],
        frozen: Sequence[str],
        moves: Mapping[Any, Iterable[Any]],
        terminal: Iterable[Any],
    ) -> None:
        self.identity, self.frozen = identity, frozen
        self.moves, self.terminal = moves, [str(state) for state in terminal]
        super().__init__(name=name)

    def get_func(self, model: type[models.Model]) -> str:
        return f"""
            if {_changed(model, with_key(model, self.identity))} or {_DELEGATION_CHANGED} then
                raise exception 'work job identity is immutable';
            end if;
            {_moves(self.moves, "work job")}
            if OLD.status in {_listed(self.terminal)} and ({_changed(model, self.frozen)}) then
                raise exception 'terminal work job is immutable';
            end if;
            return NEW;
        """


class StepTransition(pgtrigger.Trigger):
    """What was asked for never changes; a step moves along its table; what has ended stays as it is."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(
        self,
        *,
        name: str,
        identity: Sequence[str],
        frozen: Sequence[str],
        moves: Mapping[Any, Iterable[Any]],
        terminal: Iterable[Any],
    ) -> None:
        self.identity, self.frozen = identity, frozen
        self.moves, self.terminal = moves, [str(state) for state in terminal]
        super().__init__(name=name)

    def get_func(self, model: type[models.Model]) -> str:
        return f"""
            if {_changed(model, with_key(model, self.identity))} then
                raise exception 'work job step identity is immutable';
            end if;
            {_moves(self.moves, "work job step")}
            if OLD.status in {_listed(self.terminal)} and ({_changed(model, self.frozen)}) then
                raise exception 'terminal work job step is immutable';
            end if;
            return NEW;
        """


class NeverDecreases(pgtrigger.Trigger):
    """A number that only grows: who holds an old generation can never be made the newest again."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(self, *, name: str, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(name=name)

    def get_func(self, model: type[models.Model]) -> str:
        column = _column(model, self.field)
        return f"if NEW.{column} < OLD.{column} then raise exception '{self.message}'; end if; return NEW;"


# The session of a delegation is its checkpoint; everything else in the map is what was admitted.
_DELEGATION_CHANGED = """(case when jsonb_typeof(NEW.delegation) = 'object' and jsonb_typeof(OLD.delegation) = 'object'
    then (NEW.delegation - 'resume_session_id') is distinct from (OLD.delegation - 'resume_session_id')
    else NEW.delegation is distinct from OLD.delegation end)"""


def _moves(moves: Mapping[Any, Iterable[Any]], noun: str) -> str:
    return "".join(
        f"""
            if OLD.status = '{before!s}' and NEW.status not in {_listed(after)} then
                raise exception 'invalid {before!s} {noun} transition';
            end if;"""
        for before, after in moves.items()
    )


def _listed(states: Iterable[Any]) -> str:
    return "(" + ", ".join(f"'{state!s}'" for state in states) + ")"


def _changed(model: type[models.Model], fields: Sequence[str]) -> str:
    columns = [_column(model, name) for name in fields]
    return " or ".join(f'NEW."{column}" is distinct from OLD."{column}"' for column in columns)


def _column(model: type[models.Model], name: str) -> str:
    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)
    return str(field.column)
