"""Admitting a run: one row, committed and due, before anything is sent to a box."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import IntegrityError, connection, transaction

from base import notify
from boxes import selectors
from boxes.client import client
from boxes.conf import box_api
from boxes.errors import BoxNotFound, BoxNotReady, BoxStopped, ProviderCode, ProviderError
from boxes.models import Box
from boxes.states import UP
from runs.errors import IdempotencyConflict, InvalidCommand, InvalidIdempotencyKey, RunInProgress
from runs.models import Run
from runs.models.run import LONGEST_COMMAND_BYTES, LONGEST_KEY_BYTES

log = structlog.get_logger(__name__)

DRIVER = "runs"
RUNS_FOLDER = "$HOME/.openagents/box-runs/users"
LONGEST_PRINCIPAL = 128
_NOT_IN_A_PATH = re.compile(r"[^A-Za-z0-9_-]")


def start_run(
    conversation_id: UUID,
    box_ref: str | UUID | Box,
    principal: Mapping[str, Any],
    command: str,
    idempotency_key: str,
) -> Run:
    """Admit `command` on a box of the conversation; a worker starts it at once. Returns the run with its box.

    `box_ref` is whatever names a box, or the box itself if the caller has just found it in this conversation. The same key with the same box and command answers the run that is there, whatever its state. Raises InvalidCommand,
    InvalidIdempotencyKey, BoxNotFound, BoxNotReady, BoxStopped, RunInProgress or IdempotencyConflict; nothing is written
    then. The provider is asked once about the box; if it does not answer, the ledger's word counts.
    """
    check_command(command)
    check_key(idempotency_key)
    box = _box(conversation_id, box_ref)
    refusal = _why_not(box)
    try:
        return _admit(box, dict(principal), command, idempotency_key, refusal)
    except IntegrityError:
        # Another start was faster, by the key or on the box; what it wrote is committed now.
        return _existing(box, command, idempotency_key) or _refuse(RunInProgress())


def _box(conversation_id: UUID, ref: str | UUID | Box) -> Box:
    box = ref if isinstance(ref, Box) else selectors.find(conversation_id, ref)
    if box is None or box.conversation_id != conversation_id:
        raise BoxNotFound
    return box


def check_command(command: str) -> None:
    """Raises InvalidCommand for a text that cannot be sent to a box."""
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise InvalidCommand
    if not 1 <= _bytes(command) <= LONGEST_COMMAND_BYTES:
        raise InvalidCommand


def check_key(key: str) -> None:
    """Raises InvalidIdempotencyKey for a key that cannot be stored."""
    if not isinstance(key, str) or "\0" in key or not 1 <= _bytes(key) <= LONGEST_KEY_BYTES:
        raise InvalidIdempotencyKey


def run_directory(principal: Mapping[str, Any], run_id: UUID) -> str:
    """Where the run lives on its box; `$HOME` is the box's."""
    name = _NOT_IN_A_PATH.sub("-", str(principal.get("id") or "unknown"))[:LONGEST_PRINCIPAL]
    return f"{RUNS_FOLDER}/{name}/{run_id}"


def _bytes(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return -1  # lone surrogates are no text


def _why_not(box: Box) -> Exception | None:
    """Why no new run may start on this box, as far as the ledger and the provider say now."""
    if box.stopped_at is not None or box.stop_requested_at is not None:
        return BoxStopped()
    if box.box_id is None:
        return BoxNotReady()
    try:
        shown = client().get(box.box_id)
    except ProviderError as error:
        if error.code == ProviderCode.NOT_FOUND or error.gone_code:
            return _gone(box)
        log.info("box_not_seen", box=str(box.pk), code=error.code)
        return None if box.state in UP else BoxNotReady()
    if shown.is_terminal or shown.state == "archiving":
        return _gone(box)
    return None if shown.is_up else BoxNotReady()


def _gone(box: Box) -> BoxStopped:
    """The provider has ended a box that the ledger holds for alive: the next reconcile pass looks at it first."""
    Box.objects.filter(pk=box.pk, stopped_at=None).update(next_reconciliation_at=None)
    return BoxStopped()


@transaction.atomic
def _admit(box: Box, principal: dict[str, Any], command: str, key: str, refusal: Exception | None) -> Run:
    """The transaction: an existing run first, then what speaks against a new one, then the row."""
    now, is_stopped = _lock(box)
    if existing := _existing(box, command, key):
        return existing
    if refusal is not None:
        raise refusal
    if is_stopped:
        raise BoxStopped
    run = _insert(box, principal, command, key, now)
    if Run.objects.filter(conversation_box=box, kill_confirmed=False).exclude(pk=run.pk).exists():
        raise RunInProgress
    notify.notify(notify.DUE, DRIVER)
    log.info("run_admitted", run=str(run.pk), box=str(box.pk))
    return run


# Statements of the way that every run takes are written out: to build such a query takes longer than to execute it.
_LOCK = """
    select clock_timestamp(), stopped_at is not null or stop_requested_at is not null
    from conversation_boxes where id = %s for no key update
"""
_OF_KEY = "select id, conversation_box_id, command from box_runs where conversation_id = %s and idempotency_key = %s"


def _lock(box: Box) -> tuple[datetime, bool]:
    """The database's time, and whether the box is stopped or its stop asked for; nobody else can change that until this
    transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [box.pk])
        row = cursor.fetchone()
    assert row is not None, "boxes are never deleted"
    return row[0], row[1]


def _existing(box: Box, command: str, key: str) -> Run | None:
    """The run of this key; raises IdempotencyConflict if it is another command or another box."""
    with connection.cursor() as cursor:
        cursor.execute(_OF_KEY, [box.conversation_id, key])
        row = cursor.fetchone()
    if row is None:
        return None
    run_id, *known = row
    if known != [box.pk, command]:
        raise IdempotencyConflict
    return Run.objects.select_related("conversation_box").get(pk=run_id)


def _insert(box: Box, principal: dict[str, Any], command: str, key: str, now: datetime) -> Run:
    """The new row. Whether its box is free is known only after the insert, by the index and by what is asked then."""
    settings, run_id = box_api(), uuid.uuid4()
    return Run.objects.create(
        id=run_id,
        conversation_id=box.conversation_id,
        conversation_box=box,
        requesting_principal=principal,
        command=command,
        idempotency_key=key,
        run_directory=run_directory(principal, run_id),
        admitted_at=now,
        deadline_at=now
        + timedelta(seconds=max(1, min(settings.run_max_duration_seconds, settings.ttl_seconds))),
        next_step_at=now,
    )


def _refuse(error: Exception) -> Run:
    raise error
