"""Jobs: list, start, look, steps, cancel."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rates
from accounts.caller import token_of, user_of
from accounts.creating import KEY, KEY_ERRORS, made_once
from accounts.idempotency import Answer
from accounts.permissions import InsufficientScope
from accounts.scopes import Scope
from accounts.services import scopes_of
from accounts.waiting import WAIT, after_waiting
from base.api.errors import register_statuses
from base.api.pagination import NewestFirstPagination
from base.api.parameters import all_owners
from base.api.schema import refusals
from base.api.views import ApiView, OwnedList
from conversations.listing import by_conversation
from conversations.services import conversation_of
from work import services
from work.api.filters import JobFilter
from work.api.serializers import CreateJobSerializer, JobSerializer, JobStepSerializer
from work.delegations import start_delegation
from work.delegations.errors import STATUS_BY_CODE as DELEGATION_STATUSES
from work.errors import STATUS_BY_CODE, JobNotFound
from work.models import Job, JobStep
from work.states import JobKind
from work.watching import key_of

register_statuses(STATUS_BY_CODE)
register_statuses(DELEGATION_STATUSES)
JOBS_PER_MINUTE = 10


def jobs_of(request: Request) -> QuerySet[Job]:
    """The jobs that the caller may see."""
    jobs = Job.objects.select_related("on_machine")
    if all_owners(request):
        return jobs
    return jobs.filter(owner_visitor__user=request.user.pk, conversation__deleted_at=None)


def find_job(request: Request, job_id: UUID) -> Job:
    """Raises JobNotFound for another owner's job just as for one that does not exist."""
    job: Job | None = jobs_of(request).filter(pk=job_id).first()
    if job is None:
        raise JobNotFound
    return job


def show(job: Job) -> dict[str, Any]:
    return dict(JobSerializer(job).data)


class Jobs(OwnedList):
    """The caller's jobs, newest first."""

    queryset = Job.objects.none()
    serializer_class = JobSerializer
    filterset_class = JobFilter
    write_scope = Scope.WORK_CONTROL

    def rows(self) -> QuerySet[Job]:
        return by_conversation(self.request, jobs_of(self.request))

    @extend_schema(
        summary="Start a job",
        parameters=[KEY],
        extensions=refusals(
            "invalid_work_job",
            "invalid_delegation_request",
            "conversation_not_found",
            "machine_not_found",
            "machine_offline",
            "machine_revoked",
            "machine_expired",
            "agent_not_available",
            "cwd_not_allowed",
            "computer_controller_disabled",
            "rate_limited",
            *KEY_ERRORS,
        ),
        description=(
            "`deep_work` is done on the server with what the caller's token may do; a `delegation` by an agent on a paired "
            "machine, and needs `computer:control` as well. The job goes on after this answer and ends with a report."
        ),
        request=CreateJobSerializer,
        responses={
            202: JobSerializer,
        },
    )
    def post(self, request: Request) -> Response:
        wanted = CreateJobSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        make = _delegation if wanted.validated_data["kind"] == JobKind.DELEGATION else _deep_work
        if make is _delegation and Scope.COMPUTER_CONTROL not in scopes_of(token_of(request)):
            raise InsufficientScope(
                detail=f"a delegation needs a token with the scope {Scope.COMPUTER_CONTROL}"
            )
        rates.count(f"user:{request.user.pk}", "job_create", JOBS_PER_MINUTE)
        return made_once(
            request,
            "POST /jobs",
            lambda ticket: _made(request, make, wanted.validated_data, f"api:{ticket}"),
        )


def _made(request: Request, make: Any, wanted: dict[str, Any], ref: str) -> Answer:
    """The job of this request; the one that an attempt of it made before it died, if there is one."""
    conversation = conversation_of(user_of(request), wanted.get("conversation"))
    known = Job.objects.filter(conversation=conversation, requesting_tool_step_ref=ref).first()
    job = known or make(request, conversation, wanted, ref)
    return Answer(202, show(find_job(request, job.pk)))


def _deep_work(request: Request, conversation: Any, wanted: dict[str, Any], ref: str) -> Job:
    optional = ("context_hint", "token_budget", "cost_budget_microusd", "keep_boxes")
    return services.start_job(
        conversation_id=conversation.pk,
        owner_visitor_id=conversation.visitor_id,
        goal=wanted["goal"],
        surface=wanted["surface"],
        requesting_tool_step_ref=ref,
        authority_snapshot={"scopes": sorted(scopes_of(token_of(request)))},
        **{name: wanted[name] for name in optional if name in wanted},
    )


def _delegation(request: Request, conversation: Any, wanted: dict[str, Any], ref: str) -> Job:
    return start_delegation(
        user_of(request),
        machine_id=wanted["machine"],
        agent_id=wanted["agent_id"],
        prompt=wanted["prompt"],
        cwd=wanted["cwd"],
        timeout_ms=wanted.get("timeout_ms"),
        goal=wanted.get("goal"),
        conversation_id=conversation.pk,
        surface=wanted["surface"],
        context_hint=wanted.get("context_hint"),
        requesting_tool_step_ref=ref,
    )


class JobDetail(ApiView):
    lookup_errors = ("work_job_not_found",)
    write_scope = Scope.WORK_CONTROL

    @extend_schema(
        summary="One job",
        description="With `wait`, answers when the status changes, at the latest after that time.",
        parameters=[WAIT],
        responses={200: JobSerializer},
    )
    def get(self, request: Request, job_id: UUID) -> Response:
        job = after_waiting(request, lambda: find_job(request, job_id), key_of(job_id), field="status")
        return Response(show(job))


class StepPagination(NewestFirstPagination):
    """In the order in which the steps were asked for; a job has at most 64, so one page holds them all."""

    ordering = ("sequence",)
    page_size = 64


class JobSteps(OwnedList):
    """The tool calls of a job, in their order."""

    lookup_errors = ("work_job_not_found",)
    queryset = JobStep.objects.none()
    serializer_class = JobStepSerializer
    pagination_class = StepPagination
    filter_backends = ()
    write_scope = Scope.WORK_CONTROL

    def rows(self) -> QuerySet[JobStep]:
        return JobStep.objects.filter(work_job=find_job(self.request, self.kwargs["job_id"]))

    @extend_schema(summary="The steps of a job", responses={200: JobStepSerializer(many=True)})
    def get(self, request: Request, job_id: UUID) -> Response:
        return super().get(request)


class CancelJob(ApiView):
    lookup_errors = ("work_job_not_found",)
    write_scope = Scope.WORK_CONTROL

    @extend_schema(
        summary="Cancel a job",
        description=(
            "Asked for durably. A job that nobody is at work on has ended when this answers; of another "
            "`cancel_requested_at` says that it is stopping. One that has ended is answered as it is."
        ),
        request=None,
        responses={202: JobSerializer},
    )
    def post(self, request: Request, job_id: UUID) -> Response:
        job = services.cancel_job(find_job(request, job_id).pk)
        return Response(show(find_job(request, job.pk)), status=202)
