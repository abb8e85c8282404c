"""`/machine/v1/`: the channel of paired machines. See docs/reference/machines.md for the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import rates
from base import wakeups
from base.api import errors as api_errors
from base.api.parameters import whole_number
from work.channel import asking, connections, errors, limits, receiving
from work.channel.authentication import (
    IsMachine,
    MachineTokenAuthentication,
    machine_of,
    presented_token,
)
from work.channel.errors import FrameTooLarge, InvalidFrame
from work.channel.fields import Fields
from work.channel.sending import Compose, Outgoing, hand_out, has_news
from work.channel.waking import machine_key
from work.delegations.offers import OFFER, compose_offer
from work.errors import MachineExpired, MachineNotFound, MachineRevoked
from work.machines import presence
from work.machines.revoking import revoke_machine
from work.machines.tokens import authenticate_token
from work.models import Machine

api_errors.register_statuses(errors.STATUS_BY_CODE)
LARGEST_NUMBER = 2**62
COMPOSE: Mapping[str, Compose] = {
    OFFER: compose_offer,
    asking.CHECK: asking.question,
    asking.PROBE: asking.question,
}
_NOT_LET_IN = (MachineNotFound, MachineRevoked, MachineExpired)


class ChannelView(APIView):
    """A view for machines only. What is wrong with a token is said by its code, always as 401."""

    authentication_classes = (MachineTokenAuthentication,)
    permission_classes = (IsMachine,)
    operation, requests_per_minute = "machine_request", limits.REQUESTS_PER_MINUTE

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if int(request.META.get("CONTENT_LENGTH") or 0) > limits.BODY_BYTES:
            raise FrameTooLarge
        rates.count(f"machine:{machine_of(request).pk}", self.operation, self.requests_per_minute)

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return _answer


def _answer(error: Exception, context: dict[str, Any]) -> Response | None:
    response = api_errors.answer(error, context)
    if response is not None and isinstance(error, _NOT_LET_IN):
        response.status_code = 401
        response["WWW-Authenticate"] = "Bearer"
    return response


@extend_schema(exclude=True)
class Connect(ChannelView):
    def post(self, request: Request) -> Response:
        machine = machine_of(request)
        connected = connections.connect(machine, request.data)
        return Response(
            {
                "epoch": connected.epoch,
                "received": connected.received,
                "poll_seconds": limits.POLL_SECONDS,
                "frame_bytes": limits.FRAME_BYTES,
                "frames_at_once": limits.FRAMES_AT_ONCE,
                "machine": {"id": str(machine.pk), "name": machine.name, "tier": machine.tier},
            }
        )


@extend_schema(exclude=True)
class Poll(ChannelView):
    """What there is for the machine; waits for it. A view of its own, since polls are counted apart."""

    operation, requests_per_minute = "machine_poll", limits.POLLS_PER_MINUTE

    def get(self, request: Request) -> Response:
        machine = machine_of(request)
        epoch = whole_number(request, "epoch", default=0, maximum=LARGEST_NUMBER)
        heard = whole_number(request, "heard", default=0, maximum=LARGEST_NUMBER)
        seconds = whole_number(request, "wait", default=0, maximum=limits.POLL_SECONDS)
        presence.touch(machine.pk)
        frames = hand_out(machine.pk, epoch, heard, COMPOSE)
        if not frames and seconds:
            wakeups.wait_until(machine_key(machine.pk), lambda: has_news(machine.pk, epoch), seconds=seconds)
            machine = authenticate_token(presented_token(request))  # it may have been revoked meanwhile
            presence.touch(machine.pk)
            frames = hand_out(machine.pk, epoch, heard, COMPOSE)
        return Response({"frames": [_shown(frame) for frame in frames]})


@extend_schema(exclude=True)
class Tell(ChannelView):
    def post(self, request: Request) -> Response:
        machine, fields = machine_of(request), Fields(request.data)
        epoch = fields.whole("epoch")
        frames = receiving.parse(fields.list_of("frames", limits.FRAMES_AT_ONCE + 1))
        presence.touch(machine.pk)
        taken = receiving.take(machine, epoch, frames)
        return Response({"received": taken.received, "refused": taken.refused})


@extend_schema(exclude=True)
class Disconnect(ChannelView):
    def post(self, request: Request) -> Response:
        connections.disconnect(machine_of(request), Fields(request.data).whole("epoch"))
        return Response(status=204)


@extend_schema(exclude=True)
class Unpair(ChannelView):
    """The machine gives its token back."""

    def post(self, request: Request) -> Response:
        machine: Machine = machine_of(request)
        if request.data not in ({}, None):
            raise InvalidFrame(detail="the body must be empty")
        revoke_machine(machine)
        return Response(status=204)


def _shown(frame: Outgoing) -> dict[str, Any]:
    return {"seq": frame.seq, "kind": frame.kind, "body": frame.body}
