"""Incidents: what went wrong, for its owner."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.scopes import Scope
from base.api.parameters import all_owners
from base.api.views import ApiView, OwnedList
from work import incidents
from work.api.filters import IncidentFilter
from work.api.serializers import ChangeIncidentSerializer, IncidentDetailSerializer, IncidentSerializer
from work.errors import IncidentNotFound
from work.models import Incident


def incidents_of(request: Request) -> QuerySet[Incident]:
    """The incidents that the caller may see: their own, or with `?all=true` for staff everybody's and nobody's."""
    return (
        Incident.objects.all() if all_owners(request) else Incident.objects.filter(owner_user=request.user.pk)
    )


def find_incident(request: Request, incident_id: UUID) -> Incident:
    """Raises IncidentNotFound for another owner's incident just as for one that does not exist."""
    incident: Incident | None = incidents_of(request).filter(pk=incident_id).first()
    if incident is None:
        raise IncidentNotFound
    return incident


class Incidents(OwnedList):
    """The caller's incidents, newest first."""

    queryset = Incident.objects.none()
    serializer_class = IncidentSerializer
    filterset_class = IncidentFilter
    write_scope = Scope.WORK_CONTROL

    def rows(self) -> QuerySet[Incident]:
        return incidents_of(self.request)


class IncidentDetail(ApiView):
    lookup_errors = ("incident_not_found",)
    write_scope = Scope.WORK_CONTROL

    @extend_schema(summary="One incident", responses={200: IncidentDetailSerializer})
    def get(self, request: Request, incident_id: UUID) -> Response:
        return _shown(find_incident(request, incident_id))

    @extend_schema(
        summary="Say what became of an incident",
        request=ChangeIncidentSerializer,
        responses={200: IncidentDetailSerializer},
    )
    def patch(self, request: Request, incident_id: UUID) -> Response:
        wanted = ChangeIncidentSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        return _shown(incidents.change(find_incident(request, incident_id), **wanted.validated_data))


def _shown(incident: Incident) -> Response:
    incident.recurrence = incidents.recurrence(incident)  # type: ignore[attr-defined]  # of the answer
    return Response(IncidentDetailSerializer(incident).data)
