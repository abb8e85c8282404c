"""`/history`: what happened to one object, and who did it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request

from accounts.caller import user_of
from accounts.models import User
from base.api.pagination import NewestFirstPagination
from base.api.parameters import all_owners
from base.api.views import OwnedList
from base.errors import CodedError
from base.history import Actor, Transition, rows_of, transitions
from boxes.models import Box, ReconciliationEvent
from forge.models import Assignment
from openagents_site.webhooks.models import Subscription
from runs.models import Run
from work.models import Incident, Job, Machine


class ObjectNotFound(CodedError):
    """There is no such object."""

    code = "object_not_found"


class InvalidObject(CodedError):
    """Name an object as `object=<id>` or `object=<kind>:<id>`."""

    code = "invalid_object"


@dataclass(frozen=True)
class Kind:
    """A kind of object with a history, and which of them are a user's."""

    name: str
    model: type[Model]
    mine: Callable[[User], dict[str, Any]] | None  # None: staff alone


KINDS = (
    Kind("box", Box, lambda user: {"conversation__visitor__user": user}),
    Kind("run", Run, lambda user: {"conversation__visitor__user": user}),
    Kind("job", Job, lambda user: {"conversation__visitor__user": user}),
    Kind("assignment", Assignment, lambda user: {"conversation__visitor__user": user}),
    Kind("machine", Machine, lambda user: {"user": user}),
    Kind("incident", Incident, lambda user: {"owner_user": user}),
    Kind("leak", ReconciliationEvent, None),
    Kind("webhook", Subscription, lambda user: {"owner": user}),
)
NAMES = [kind.name for kind in KINDS]


class ActorSerializer(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=["user", "token", "machine", "system"])
    id = serializers.CharField(allow_null=True, help_text="Of the user, the token or the machine.")
    name = serializers.CharField(
        allow_null=True, help_text="The account's, or the part of the system that acted."
    )


class ObjectSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=NAMES)
    id = serializers.UUIDField()


class TransitionSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    object = ObjectSerializer()
    at = serializers.DateTimeField()
    event = serializers.ChoiceField(choices=["created", "changed"])
    state = serializers.CharField(allow_null=True)
    previous_state = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    values = serializers.DictField(help_text="The watched fields after the change.")
    actor = ActorSerializer()
    request_id = serializers.CharField(allow_null=True, help_text="Names the log lines of the request.")


class HistoryPagination(NewestFirstPagination):
    ordering = ("-pgh_id",)


@extend_schema_view(
    get=extend_schema(
        summary="What happened to an object, and who did it",
        description=(
            "Every change of a box, a run, a job, an assignment, a machine or an incident of the caller's, newest first. "
            "`object` is its id, or `kind:id`. Staff may ask about any with `all=true`, and about leaks."
        ),
        parameters=[
            OpenApiParameter(
                "object", str, required=True, description=f"`id` or `kind:id`; kinds: {', '.join(NAMES)}."
            )
        ],
        responses={200: TransitionSerializer(many=True)},
    )
)
class History(OwnedList):
    """The history of one object; two queries to find it at the least, and three for a page."""

    lookup_errors = (
        "object_not_found",
        "invalid_object",
    )
    queryset = Box.objects.none()
    serializer_class = TransitionSerializer
    pagination_class = HistoryPagination
    filter_backends = ()

    def rows(self) -> QuerySet[Any]:
        self.kind, self.found = _find(self.request)
        return rows_of(self.kind.model, self.found)

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        seen_by_staff = all_owners(self.request)
        return [self._shown(transition, seen_by_staff) for transition in transitions(page or ())]

    def _shown(self, transition: Transition, seen_by_staff: bool) -> dict[str, Any]:
        own = str(user_of(self.request).pk)
        actor = transition.actor if seen_by_staff else _as_owner_sees(transition.actor, own)
        return asdict(replace(transition, actor=actor)) | {
            "object": {"kind": self.kind.name, "id": self.found}
        }


def _as_owner_sees(actor: Actor, own: str) -> Actor:
    """Owners are told that staff acted, and not who of them."""
    if actor.user is None or actor.user == own:
        return actor
    return Actor(actor.type, None, "staff")


def _find(request: Request) -> tuple[Kind, UUID]:
    """The object that is asked about. Raises InvalidObject, and ObjectNotFound also for what is another's."""
    kinds, pk = _named(request.query_params.get("object", ""))
    everybody = all_owners(request)
    for kind in kinds:
        if not everybody and kind.mine is None:
            continue
        rows = kind.model._default_manager.filter(pk=pk)
        if not everybody and kind.mine is not None:
            rows = rows.filter(**kind.mine(user_of(request)))
        if rows.exists():
            return kind, pk
    raise ObjectNotFound


def _named(text: str) -> tuple[list[Kind], UUID]:
    name, colon, rest = text.partition(":")
    kinds = [kind for kind in KINDS if not colon or kind.name == name]
    try:
        pk = UUID(rest if colon else text)
    except ValueError:
        raise InvalidObject from None
    if not kinds:
        raise InvalidObject
    return kinds, pk
