"""Connecting: a new connection ends the older one, both sides say how far they have heard the other, and what a machine no
longer knows is given to it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from django.db import connection, transaction

from base.clock import database_now
from work import limits as work_limits
from work.channel import limits
from work.channel.errors import ProtocolUnsupported
from work.channel.fields import Fields
from work.channel.probes import store_probe
from work.channel.waking import wake_machine
from work.delegations import resuming
from work.machines import presence
from work.models import Machine, MachineChannel, MachineFrame
from work.watching import wake_workers

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Connected:
    """What the machine is told: the number of its connection, and how far it was heard."""

    epoch: int
    received: int


def connect(machine: Machine, body: Any) -> Connected:
    """Begin a connection; every older one is over.

    The body: `protocol`, `agent_version`, `heard` (the last frame that the machine has of ours), `oldest` (the number of the
    oldest frame that it still holds for us, or of the next one), `delegations` (what it knows of, as `{"job", "attempt"}`)
    and `probe`. Raises ProtocolUnsupported and InvalidFrame.
    """
    fields = Fields(body)
    if fields.whole("protocol") != limits.PROTOCOL:
        raise ProtocolUnsupported
    heard, oldest = fields.whole("heard"), fields.whole("oldest", least=1)
    known = [_known(Fields(item)) for item in fields.list_of("delegations", 256)]
    presence.touch(machine.pk, every_seconds=0)
    MachineChannel.objects.get_or_create(machine=machine)
    with transaction.atomic():
        channel = MachineChannel.objects.select_for_update(no_key=True).get(machine=machine)
        channel.epoch += 1
        channel.connected_at, channel.closed_at = database_now(), None
        _agree(channel, heard, oldest)
        channel.save()
        _note_version(machine, fields.text("agent_version", work_limits.PLATFORM_CHARACTERS))
        store_probe(machine.pk, fields.map("probe"))
        resuming.offer_again(machine, known)
        wake_machine(machine.pk)
        _wake_jobs(machine)
    log.info("machine_connected", machine=str(machine.pk), epoch=channel.epoch)
    return Connected(channel.epoch, channel.received_seq)


def disconnect(machine: Machine, epoch: int) -> bool:
    """The machine says goodbye: it is offline at once. False if it has connected anew since."""
    with transaction.atomic():
        channels = MachineChannel.objects.filter(machine=machine, epoch=epoch, closed_at=None)
        was_open = bool(channels.update(closed_at=database_now()))
        if was_open:
            _wake_jobs(machine)
    return was_open


def _agree(channel: MachineChannel, heard: int, oldest: int) -> None:
    """Where one side has lost what it knew (a restored backup, a lost folder), numbers go on from the higher one."""
    frames = MachineFrame.objects.filter(machine_id=channel.machine_id)
    if heard > channel.sent_seq:
        frames.update(seq=None)
        channel.sent_seq = heard
    else:
        frames.filter(seq__lte=heard).delete()
    channel.received_seq = max(channel.received_seq, oldest - 1)


def _note_version(machine: Machine, version: str) -> None:
    if version and version != machine.agent_version:
        Machine.objects.filter(pk=machine.pk).update(agent_version=version)


def _known(fields: Fields) -> tuple[str, int]:
    return str(fields.uuid("job")), fields.whole("attempt", least=1)


def _wake_jobs(machine: Machine) -> None:
    """Whoever drives the machine's jobs looks again: it is there now, or is not any more."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE_NOW, [machine.pk])
    wake_workers()


_DUE_NOW = """
    update work_jobs set next_step_at = clock_timestamp()
    where machine_id = %s and status in ('queued', 'running') and lease_expires_at is null
"""
