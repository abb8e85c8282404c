"""What staff may do to rows: asked first, permitted, carried out row by row, logged, and told row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import Model
from django.forms import Form
from django.http import HttpRequest

from base.errors import CodedError

log = structlog.get_logger(__name__)

Kind = Literal["done", "already", "refused", "failed"]
MOST_ROWS = 100
"""Rows of one action. Each may be a call to a provider, and somebody waits."""


@dataclass(frozen=True)
class Outcome:
    """What became of one row, in words that follow its name."""

    kind: Kind
    text: str
    code: str = ""


def done(text: str) -> Outcome:
    """It was done."""
    return Outcome("done", text)


def already(text: str) -> Outcome:
    """There was nothing left to do."""
    return Outcome("already", text)


@dataclass(frozen=True)
class Action:
    """Something that may be done to a row, or, with `on_list`, to none in particular.

    `perform(row, request, values)` calls one service and says what it did; a CodedError is a refusal, and one with a code of
    `already` says that there was nothing left to do. It is never called inside a transaction. `values` are those of `form`,
    where it has one. `permission` is a codename of the row's app. `applies(row)` says whether its page offers it.
    """

    name: str
    title: str
    warning: str
    permission: str
    perform: Callable[[Any, HttpRequest, dict[str, Any]], Outcome]
    icon: str = "bolt"
    form: type[Form] | None = None
    applies: Callable[[Any], bool] = field(default=lambda row: True)
    already: Sequence[str] = ()
    dangerous: bool = False
    on_list: bool = False

    def may(self, request: HttpRequest, model: type[Model]) -> bool:
        """Whether the caller has the permission."""
        return bool(request.user.has_perm(f"{model._meta.app_label}.{self.permission}"))


def carry_out(
    action: Action, rows: Iterable[Model], request: HttpRequest, values: dict[str, Any]
) -> list[tuple[Model, Outcome]]:
    """Do it to each row and log each; one that fails costs only itself."""
    outcomes = []
    for row in rows:
        outcome = _one(action, row, request, values)
        write_log(request, type(row), row, f"{action.title}: {said(outcome)}")
        outcomes.append((row, outcome))
    return outcomes


def carry_out_on_list(
    action: Action, model: type[Model], request: HttpRequest, values: dict[str, Any]
) -> Outcome:
    """The same for an action on no row in particular."""
    outcome = _one(action, None, request, values)
    write_log(request, model, None, f"{action.title}: {said(outcome)}")
    return outcome


def said(outcome: Outcome) -> str:
    """The outcome in words, with its code."""
    return f"{outcome.text} ({outcome.code})" if outcome.code else outcome.text


def write_log(
    request: HttpRequest, model: type[Model], row: Model | None, message: str, flag: int = CHANGE
) -> None:
    """One entry of the staff log. A row is named by its public id, which for a token is not its digest."""
    LogEntry.objects.create(
        user_id=str(request.user.pk),
        content_type=ContentType.objects.get_for_model(model),
        object_id=None if row is None else str(public_id(row)),
        object_repr=str(model._meta.verbose_name_plural if row is None else row)[:200],
        action_flag=flag,
        change_message=message,
    )


def public_id(row: Model) -> Any:
    """What may stand for the row in an address: its `id`, where it has one beside a primary key that is nobody's business."""
    return getattr(row, "id", row.pk)


def _one(action: Action, row: Model | None, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    try:
        return action.perform(row, request, values)
    except CodedError as error:
        kind: Kind = "already" if error.code in action.already else "refused"
        return Outcome(kind, error.detail, error.code)
    except Exception:
        connection.ensure_connection()
        log.exception("staff_action_failed", action=action.name, row=row and str(public_id(row)))
        request_id = structlog.contextvars.get_contextvars().get("request_id", "unknown")
        return Outcome("failed", f"It failed; the log says why under request {request_id}.")
