"""Runs over HTTP. Views check the body, call one service, and show the row."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rates
from accounts.caller import caller_now
from accounts.waiting import WAIT, after_waiting, wait_for
from base.api.errors import register_statuses
from base.api.pagination import NewestFirstPagination
from base.api.parameters import all_owners, wait_seconds, whole_number
from base.api.schema import refusals
from base.api.views import ApiView, OwnedList
from boxes.api.boxes import find_box
from conversations.listing import by_conversation
from runs import services, streaming
from runs.errors import STATUS_BY_CODE, InvalidIdempotencyKey, RunNotFound
from runs.filters import RunFilter
from runs.models import Run
from runs.serializers import CreateRunSerializer, LogSerializer, OutputSerializer, RunSerializer
from runs.watching import key_of

register_statuses(STATUS_BY_CODE)
RUNS_PER_MINUTE = 10
LARGEST_OFFSET = 2**62
LARGEST_LOG_PIECE = 1 << 20
KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 256},
    OpenApiParameter.HEADER,
    description="Required, 1 to 256 bytes, here or as `idempotency_key` in the body. The same key with the same box and command gets the "
    "same run.",
)
OFFSET = OpenApiParameter("offset", int, description="Byte offset in what the command wrote.")


EVENTS = {"description": "Server-sent events: `event`, `id`, and `data`, which is JSON."}


def runs_of(request: Request) -> QuerySet[Run]:
    """The runs that the caller may see."""
    runs = Run.objects.select_related("conversation_box")
    return runs if all_owners(request) else runs.filter(conversation__visitor__user=request.user.pk)


def find_run(request: Request, run_id: UUID) -> Run:
    """Raises RunNotFound for another owner's run just as for one that does not exist."""
    run: Run | None = runs_of(request).defer("output", "output_state").filter(pk=run_id).first()
    if run is None:
        raise RunNotFound
    return run


class RunPagination(NewestFirstPagination):
    ordering = ("-admitted_at", "-id")


class Runs(OwnedList):
    """The caller's runs, newest first."""

    queryset = Run.objects.none()
    serializer_class = RunSerializer
    pagination_class = RunPagination
    filterset_class = RunFilter

    def rows(self) -> QuerySet[Run]:
        return by_conversation(self.request, runs_of(self.request)).defer("output", "output_state")

    @extend_schema(
        summary="Start a run",
        parameters=[KEY],
        extensions=refusals(
            "box_not_found",
            "box_stopped",
            "box_not_ready",
            "box_run_in_progress",
            "box_run_idempotency_conflict",
            "invalid_idempotency_key",
            "invalid_command",
            "box_api_rate_limited",
        ),
        description="The command goes on after this answer. The same key and body give the same run.",
        request=CreateRunSerializer,
        responses={
            202: RunSerializer,
        },
    )
    def post(self, request: Request) -> Response:
        rates.count(f"user:{request.user.pk}", "run_create", RUNS_PER_MINUTE, code="box_api_rate_limited")
        wanted = CreateRunSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        key = wanted.validated_data.get("idempotency_key", request.headers.get("Idempotency-Key"))
        if key is None:
            raise InvalidIdempotencyKey
        box = find_box(request, wanted.validated_data["box"])
        principal = {"type": "user", "id": str(request.user.pk)}
        run = services.start_run(box.conversation_id, box, principal, wanted.validated_data["command"], key)
        return Response(RunSerializer(run).data, status=202)


class RunDetail(ApiView):
    lookup_errors = ("box_run_not_found",)

    @extend_schema(
        summary="One run",
        description="With `wait`, answers when the state changes, at the latest after that time.",
        parameters=[WAIT],
        responses={200: RunSerializer},
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        run = after_waiting(request, lambda: find_run(request, run_id), key_of(run_id))
        return Response(RunSerializer(run).data)


class RunOutput(ApiView):
    lookup_errors = ("box_run_not_found",)

    @extend_schema(
        summary="The end of a run's output",
        extensions=refusals("invalid_output_offset"),
        description="The last 24 KiB at most. With `wait`, answers when there is something new, or the run has ended.",
        parameters=[OFFSET, WAIT],
        responses={200: OutputSerializer},
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        offset = whole_number(
            request, "offset", default=0, maximum=LARGEST_OFFSET, code="invalid_output_offset"
        )
        run, seconds = find_run(request, run_id), wait_seconds(request)
        if seconds and not _has_news(run_id, offset):
            wait_for(request, key_of(run_id), lambda: _has_news(run_id, offset), seconds)
            run = find_run(request, run_id)
        return Response(OutputSerializer(services.read_output(run, offset)).data)


def _has_news(run_id: UUID, offset: int) -> bool:
    run = Run.objects.only("state", "last_output_offset").get(pk=run_id)
    return run.is_terminal or run.last_output_offset > offset


class RunLog(ApiView):
    lookup_errors = ("box_run_not_found",)

    @extend_schema(
        summary="A piece of a run's whole log",
        extensions=refusals("invalid_output_offset"),
        parameters=[OFFSET, OpenApiParameter("limit", int, description="Bytes of text, 1 to 1 MiB.")],
        responses={200: LogSerializer},
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        offset = whole_number(
            request, "offset", default=0, maximum=LARGEST_OFFSET, code="invalid_output_offset"
        )
        limit = whole_number(
            request, "limit", default=LARGEST_LOG_PIECE, minimum=1, maximum=LARGEST_LOG_PIECE
        )
        return Response(LogSerializer(services.read_log(find_run(request, run_id), offset, limit)).data)


class RunLogDownload(ApiView):
    lookup_errors = ("box_run_not_found",)

    @extend_schema(
        summary="A run's whole log as a text file", responses={(200, "text/plain"): OpenApiTypes.STR}
    )
    def get(self, request: Request, run_id: UUID) -> HttpResponseBase:
        run = find_run(request, run_id)
        response = StreamingHttpResponse(services.log_text(run), content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="run-{run.pk}.log"'
        response["X-Content-Type-Options"] = "nosniff"
        return response


class AnyContent(BaseContentNegotiation):
    """The stream has one form; what a client says it accepts does not matter."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return JSONRenderer(), "application/json"


class RunStream(ApiView):
    lookup_errors = ("box_run_not_found",)
    content_negotiation_class = AnyContent

    @extend_schema(
        summary="Follow a run",
        extensions=refusals("invalid_output_offset"),
        description="Server-sent events `output` (data: text, offset, next_offset), `state` and `end`; each id is the "
        "offset from which `Last-Event-ID` goes on. It ends early where the token or the session does.",
        parameters=[OFFSET],
        responses={(200, "text/event-stream"): EVENTS},
    )
    def get(self, request: Request, run_id: UUID) -> HttpResponseBase:
        run = find_run(request, run_id)
        told = streaming.events(run.pk, _resume_offset(request), is_permitted=lambda: _may_follow(request))
        response = StreamingHttpResponse(told, content_type="text/event-stream")
        response["Cache-Control"] = "no-cache"
        response["X-Accel-Buffering"] = "no"
        return response


def _may_follow(request: Request) -> bool:
    """Whether who began to follow might still begin now."""
    user = caller_now(request)
    return user is not None and (user.is_staff or not all_owners(request))


def _resume_offset(request: Request) -> int:
    last = request.headers.get("Last-Event-ID", "")
    if last.isascii() and last.isdigit() and len(last) < 19:
        return int(last)
    return whole_number(request, "offset", default=0, maximum=LARGEST_OFFSET, code="invalid_output_offset")


class CancelRun(ApiView):
    lookup_errors = ("box_run_not_found",)

    @extend_schema(
        summary="Cancel a run",
        description="Asked for durably; the run is `cancelled` once its processes are gone. An ended run is answered as it is.",
        request=None,
        responses={202: RunSerializer},
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        return Response(RunSerializer(services.cancel(find_run(request, run_id))).data, status=202)
