"""What a machine tells: each frame is taken once, in order, in one transaction with all that it changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, transaction

from base.errors import CodedError
from base.faults import declare, fault_point
from work.channel import limits
from work.channel.asking import take_answer
from work.channel.errors import FrameGap, FrameTooLarge, InvalidFrame
from work.channel.probes import store_probe
from work.channel.sending import locked_channel
from work.delegations import news
from work.models import Machine

log = structlog.get_logger(__name__)

TAKEN = declare("channel.frame_taken", "a machine's frame is committed; the machine does not know it")

Handler = Callable[[Machine, Any], None]


def _probe(machine: Machine, body: Any) -> None:
    store_probe(machine.pk, body)


HANDLERS: Mapping[str, Handler] = {
    "probe": _probe,
    "answer": take_answer,
    "accepted": news.accepted,
    "session": news.session,
    "progress": news.progress,
    "permission": news.permission,
    "result": news.result,
}


@dataclass(frozen=True, slots=True)
class Frame:
    seq: int
    kind: str
    body: Any


@dataclass
class Taken:
    """How far the machine was heard, and what of it could not be used (never to be sent again)."""

    received: int
    refused: list[dict[str, Any]] = field(default_factory=list)


def parse(raw: Any) -> list[Frame]:
    """The frames of a request. Raises InvalidFrame for what has no number, FrameTooLarge for one over 65,536 bytes."""
    if not isinstance(raw, list) or len(raw) > limits.FRAMES_AT_ONCE:
        raise InvalidFrame(detail=f"frames must be a list of at most {limits.FRAMES_AT_ONCE}")
    return [_parsed(frame) for frame in raw]


def take(machine: Machine, epoch: int, frames: Sequence[Frame]) -> Taken:
    """Take the frames in order. Those that were taken before change nothing; one that cannot be used is passed over and
    named in the answer. Raises ChannelSuperseded, and FrameGap if one is missing (what came before it is taken)."""
    taken = Taken(received=-1)
    for frame in frames:
        with transaction.atomic():
            _take(machine, epoch, frame, taken)
        fault_point(TAKEN)
    if taken.received < 0:
        with transaction.atomic():
            taken.received = locked_channel(machine.pk, epoch).received_seq
    return taken


def _take(machine: Machine, epoch: int, frame: Frame, taken: Taken) -> None:
    channel = locked_channel(machine.pk, epoch)
    taken.received = max(taken.received, channel.received_seq)
    if frame.seq <= channel.received_seq:
        return
    if frame.seq != channel.received_seq + 1:
        raise FrameGap
    refusal = _refusal(machine, frame)
    if refusal is not None:
        taken.refused.append({"seq": frame.seq, "code": refusal})
    channel.received_seq = taken.received = frame.seq
    channel.save(update_fields=["received_seq"])


def _refusal(machine: Machine, frame: Frame) -> str | None:
    """Why the frame cannot be used; None for one that was. A bad frame must not stop all that come after it."""
    try:
        with transaction.atomic():
            handler = HANDLERS.get(frame.kind)
            if handler is None:
                raise InvalidFrame(detail="there is no such kind of frame")
            handler(machine, frame.body)
    except (OperationalError, InterfaceError):
        raise  # the database: the machine sends it again
    except CodedError as error:
        log.warning("frame_refused", machine=str(machine.pk), kind=frame.kind[:16], code=error.code)
        return error.code
    except Exception:
        log.exception("frame_failed", machine=str(machine.pk), kind=frame.kind)
        return "frame_failed"
    return None


def _parsed(raw: Any) -> Frame:
    if not isinstance(raw, dict):
        raise InvalidFrame(detail="a frame is a map")
    seq, kind = raw.get("seq"), raw.get("kind")
    if isinstance(seq, bool) or not isinstance(seq, int) or not 1 <= seq < 2**62:
        raise InvalidFrame(detail="a frame has a number from 1 on")
    if not isinstance(kind, str):
        raise InvalidFrame(detail="a frame has a kind")
    if len(json.dumps(raw, ensure_ascii=False).encode(errors="replace")) > limits.FRAME_BYTES:
        raise FrameTooLarge
    return Frame(seq, kind, raw.get("body"))
