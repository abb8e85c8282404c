"""Whether a machine is there: it has a channel that it did not close, and was heard of a moment ago."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from base.clock import database_now
from base.sql import ClockTimestamp
from work.channel import limits
from work.models import Machine, MachineChannel
from work.states import MachineStatus


def is_online(machine: Machine, now: datetime) -> bool:
    """Whether the machine is there at `now`. No query if its channel was selected with it."""
    channel = getattr(machine, "channel", None)
    return (
        machine.status == MachineStatus.ACTIVE
        and machine.token_expires_at > now
        and isinstance(channel, MachineChannel)
        and channel.connected_at is not None
        and channel.closed_at is None
        and machine.last_seen_at is not None
        and machine.last_seen_at > now - timedelta(seconds=limits.ONLINE_SECONDS)
    )


def online_now(machine_id: UUID) -> bool:
    """Whether the machine is there now. Two queries."""
    machine = Machine.objects.select_related("channel").filter(pk=machine_id).first()
    return machine is not None and is_online(machine, database_now())


def touch(machine_id: UUID, *, every_seconds: int = limits.PRESENCE_SECONDS) -> None:
    """Note that the machine was heard of now, unless that was noted within `every_seconds`. One statement."""
    stale = ClockTimestamp() - timedelta(seconds=every_seconds)
    Machine.objects.filter(Q(last_seen_at=None) | Q(last_seen_at__lt=stale), pk=machine_id).update(
        last_seen_at=ClockTimestamp()
    )


def agents_of(machine: Machine) -> list[dict[str, str]]:
    """The agents that the machine found when it last looked, as `{"id", "name"}`."""
    probe = machine.last_probe
    agents = probe.get("agents") if isinstance(probe, dict) else None
    return (
        [{"id": agent["id"], "name": agent["name"]} for agent in agents] if isinstance(agents, list) else []
    )
