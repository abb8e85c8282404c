"""Pairing and machines over HTTP. Views check the body, call one service, and show the row."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import user_of
from accounts.scopes import Scope
from base.api.errors import register_statuses
from base.api.parameters import all_owners
from base.api.schema import refusals
from base.api.views import ApiView, OwnedList
from work.channel.asking import probe_machine
from work.errors import STATUS_BY_CODE as WORK_STATUSES
from work.errors import PairingInvalid, PairingPending
from work.machines import errors, selectors, throttling
from work.machines.changing import change_machine
from work.machines.errors import MachineInvalid, MachinesDisabled
from work.machines.filters import MachineFilter
from work.machines.pairing import approve_pairing, claim_pairing, start_pairing
from work.machines.revoking import revoke_machine
from work.machines.serializers import (
    ApprovePairingSerializer,
    ChangeMachineSerializer,
    MachineSerializer,
    PairingSerializer,
    StartedPairingSerializer,
    StartPairingSerializer,
)
from work.machines_conf import machine_settings
from work.models import Machine

register_statuses(WORK_STATUSES)
register_statuses(errors.STATUS_BY_CODE)
SECRET = OpenApiParameter(
    "X-Pairing-Secret", str, OpenApiParameter.HEADER, required=True, description="The poll secret."
)


class Pairings(ApiView):
    """Where a computer that nobody knows asks to be paired."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @extend_schema(
        summary="Ask for a computer to be paired",
        extensions=refusals("invalid_pairing", "rate_limited", "computer_controller_disabled"),
        description="Grants nothing: the owner approves the code. Expires after ten minutes.",
        request=StartPairingSerializer,
        responses={200: StartedPairingSerializer},
    )
    def post(self, request: Request) -> Response:
        if not machine_settings().enabled:
            raise MachinesDisabled
        throttling.count_start(request)
        started = start_pairing(**_description(request.data))
        answer = {
            "id": started.id,
            "code": started.code,
            "poll_secret": started.poll_secret,
            "status": "pending",
            "expires_at": started.expires_at,
            "approve_url": f"{settings.PUBLIC_BASE_URL}/pair/",
        }
        return _not_stored(StartedPairingSerializer(answer).data)


class PairingDetail(ApiView):
    """Where the computer asks whether it was approved, and gets its token."""

    lookup_errors = ("pairing_not_found",)
    authentication_classes = ()
    permission_classes = (AllowAny,)

    @extend_schema(
        summary="Whether a pairing was approved",
        extensions=refusals("pairing_expired", "pairing_consumed", "rate_limited"),
        description="`approved` comes once, with the token. 410 when it has expired; 404 for one that was used, is not "
        "there, or has another secret.",
        parameters=[SECRET],
        responses={200: PairingSerializer},
    )
    def get(self, request: Request, pairing_id: UUID) -> Response:
        throttling.count_poll(request)
        try:
            claim = claim_pairing(pairing_id, request.headers.get("X-Pairing-Secret", ""))
        except PairingPending:
            return _not_stored({"id": str(pairing_id), "status": "pending"})
        machine = MachineSerializer(claim.machine).data
        return _not_stored(
            {"id": str(pairing_id), "status": "approved", "token": claim.token, "machine": machine}
        )


class ApprovePairing(ApiView):
    takes_all = False
    write_scope = Scope.COMPUTER_CONTROL

    @extend_schema(
        summary="Approve the computer that shows this code",
        extensions=refusals(
            "invalid_pairing",
            "pairing_not_found",
            "pairing_expired",
            "pairing_consumed",
            "too_many_machines",
            "rate_limited",
            "computer_controller_disabled",
        ),
        request=ApprovePairingSerializer,
        responses={
            200: MachineSerializer,
        },
    )
    def post(self, request: Request) -> Response:
        if not machine_settings().enabled:
            raise MachinesDisabled
        wanted = _known_fields(request.data, ("code",))
        if not isinstance(wanted.get("code"), str):
            raise PairingInvalid({"code": ["must be text"]})
        throttling.count_code(user_of(request).pk)
        return _not_stored(MachineSerializer(approve_pairing(user_of(request), wanted["code"])).data)


def machines_for(request: Request) -> QuerySet[Machine]:
    """The machines that the caller may see."""
    if all_owners(request):
        return Machine.objects.select_related("channel")
    return selectors.machines_of(user_of(request))


class Machines(OwnedList):
    """The caller's machines, newest first; revoked ones too."""

    queryset = Machine.objects.none()
    serializer_class = MachineSerializer
    filterset_class = MachineFilter
    write_scope = Scope.COMPUTER_CONTROL

    def rows(self) -> QuerySet[Machine]:
        return machines_for(self.request)


class MachineDetail(ApiView):
    lookup_errors = ("machine_not_found",)
    write_scope = Scope.COMPUTER_CONTROL

    @extend_schema(summary="One machine", responses={200: MachineSerializer})
    def get(self, request: Request, machine_id: UUID) -> Response:
        return Response(MachineSerializer(selectors.find_machine(machines_for(request), machine_id)).data)

    @extend_schema(
        summary="Change a machine",
        extensions=refusals("invalid_machine", "machine_revoked"),
        request=ChangeMachineSerializer,
        responses={200: MachineSerializer},
    )
    def patch(self, request: Request, machine_id: UUID) -> Response:
        machine = selectors.find_machine(machines_for(request), machine_id)
        if not isinstance(request.data, dict):
            raise MachineInvalid({"non_field_errors": ["must be a map of fields"]})
        return Response(MachineSerializer(change_machine(machine, request.data)).data)

    @extend_schema(
        summary="Revoke a machine",
        description="Its token is worth nothing from now on; its delegations are cancelled. The row stays.",
        responses={204: None},
    )
    def delete(self, request: Request, machine_id: UUID) -> Response:
        revoke_machine(selectors.find_machine(machines_for(request), machine_id))
        return Response(status=204)


class ProbeMachine(ApiView):
    lookup_errors = ("machine_not_found",)
    write_scope = Scope.COMPUTER_CONTROL

    @extend_schema(
        summary="Let a machine look which agents it has",
        extensions=refusals("machine_offline", "machine_timeout"),
        description="Waits for its answer, at most 15 seconds.",
        request=None,
        responses={200: MachineSerializer},
    )
    def post(self, request: Request, machine_id: UUID) -> Response:
        machine = selectors.find_machine(machines_for(request), machine_id)
        probe_machine(machine)
        return Response(MachineSerializer(selectors.find_machine(machines_for(request), machine_id)).data)


def _description(body: Any) -> dict[str, Any]:
    """What a computer says of itself. Raises PairingInvalid for a field that there is not."""
    known = _known_fields(body, ("name", "tier", "platform", "agent_version", "roots"))
    return {"name": None, "tier": None, **known}


def _known_fields(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise PairingInvalid({"non_field_errors": ["must be a map of fields"]})
    unknown = {str(name): ["there is no such field"] for name in body if name not in names}
    if unknown:
        raise PairingInvalid(unknown)
    return dict(body)


def _not_stored(body: Any) -> Response:
    return Response(body, headers={"Cache-Control": "no-store"})
