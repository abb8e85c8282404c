"""What is told to a machine: kept until the machine has said that it has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from work.channel import limits
from work.channel.errors import ChannelSuperseded
from work.channel.waking import wake_machine
from work.models import MachineChannel, MachineFrame

NOTHING = "nothing"
Compose = Callable[[MachineFrame], dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One frame as the machine gets it."""

    seq: int
    kind: str
    body: dict[str, Any]


def enqueue(machine_id: UUID, kind: str, body: Mapping[str, Any]) -> None:
    """Tell the machine, at commit or when it is there again."""
    MachineFrame.objects.create(machine_id=machine_id, kind=kind, body=dict(body))
    wake_machine(machine_id)


def hand_out(machine_id: UUID, epoch: int, heard: int, compose: Mapping[str, Compose]) -> list[Outgoing]:
    """What the machine has not heard yet, in order, at most 32 frames; those up to `heard` are forgotten.

    What is told is composed as it is handed out, for the kinds that `compose` names; one that answers None has become
    pointless and goes out as `nothing`, so that no number is missing. Raises ChannelSuperseded.
    """
    with transaction.atomic():
        channel = locked_channel(machine_id, epoch)
        frames = MachineFrame.objects.filter(machine_id=machine_id)
        frames.filter(seq__lte=heard).delete()
        waiting = list(frames.order_by("id")[: limits.FRAMES_AT_ONCE])
        for frame in waiting:
            if frame.seq is None:
                channel.sent_seq += 1
                frame.seq = channel.sent_seq
                frame.save(update_fields=["seq"])
        channel.save(update_fields=["sent_seq"])
    return [_outgoing(frame, compose) for frame in waiting]


def locked_channel(machine_id: UUID, epoch: int) -> MachineChannel:
    """The machine's channel, locked until the transaction ends. Raises ChannelSuperseded if `epoch` is not its newest."""
    channel = MachineChannel.objects.select_for_update(no_key=True).filter(machine_id=machine_id).first()
    if channel is None or channel.epoch != epoch:
        raise ChannelSuperseded
    return channel


def has_news(machine_id: UUID, epoch: int) -> bool:
    """Whether a poll of this connection has anything to answer: a frame, or that it is over. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWS, {"machine": machine_id, "epoch": epoch})
        row = cursor.fetchone()
    return bool(row and row[0])


_NEWS = """
    select exists (select from machine_frames where machine_id = %(machine)s)
        or not exists (select from machine_channels c join machines m on m.id = c.machine_id
            where c.machine_id = %(machine)s and c.epoch = %(epoch)s and m.status = 'active')
"""


def _outgoing(frame: MachineFrame, compose: Mapping[str, Compose]) -> Outgoing:
    assert frame.seq is not None
    composer = compose.get(frame.kind)
    body = composer(frame) if composer else frame.body
    if body is None:
        return Outgoing(frame.seq, NOTHING, {})
    return Outgoing(frame.seq, frame.kind, body)
