"""Asking a connected machine something and waiting for its answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from base import notify, wakeups
from base.clock import database_now
from work import digests
from work.channel import limits
from work.channel.fields import Fields
from work.channel.probes import store_probe
from work.channel.sending import enqueue
from work.channel.waking import request_key
from work.machines.errors import MachineOffline, MachineTimeout
from work.machines.presence import is_online
from work.models import Machine, MachineFrame, MachineRequest

CHECK = "check"
PROBE = "probe"
KEPT = timedelta(hours=1)


def ask(machine: Machine, kind: str, body: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
    """The machine's answer. Holds no database connection while it waits; never call it inside a transaction.

    Raises MachineOffline at once for one that is not there, and MachineTimeout after `seconds`; an answer that comes later
    is not heard.
    """
    if not is_online(machine, database_now()):
        raise MachineOffline
    with transaction.atomic():
        request = MachineRequest.objects.create(machine=machine, kind=kind)
        enqueue(machine.pk, kind, {"request": str(request.pk), **body})
    wakeups.wait_until(request_key(request.pk), lambda: _is_answered(request.pk), seconds=seconds)
    answer = MachineRequest.objects.values_list("answer", flat=True).get(pk=request.pk)
    if answer is None:
        raise MachineTimeout
    return dict(answer)


def probe_machine(machine: Machine) -> None:
    """Let the machine look which agents it has, and keep what it says. Raises MachineOffline and MachineTimeout."""
    store_probe(machine.pk, ask(machine, PROBE, {}, seconds=limits.PROBE_SECONDS))


def take_answer(machine: Machine, body: Any) -> None:
    """Keep the answer `{"request", "answer"}` of a machine to a question that it was asked. Raises InvalidFrame."""
    fields = Fields(body)
    request_id, answer = fields.uuid("request"), digests.storable_json(dict(fields.map("answer")))
    asked = MachineRequest.objects.filter(pk=request_id, machine=machine, answered_at=None)
    if asked.update(answer=answer, answered_at=database_now()):
        notify.notify(notify.CHANGED, request_key(request_id))


def question(frame: MachineFrame) -> dict[str, Any] | None:
    """The question as it is handed out; None if nobody can be waiting for its answer any more."""
    asked_since = database_now() - timedelta(seconds=max(limits.CHECK_SECONDS, limits.PROBE_SECONDS))
    return dict(frame.body) if frame.created_at > asked_since else None


def forget_old() -> int:
    """Delete questions that are an hour old; returns how many."""
    old = MachineRequest.objects.filter(created_at__lt=database_now() - KEPT)
    return old.delete()[0]


def _is_answered(request_id: UUID) -> bool:
    return MachineRequest.objects.filter(pk=request_id, answered_at__isnull=False).exists()
