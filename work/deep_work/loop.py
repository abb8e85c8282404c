"""Driving one deep-work job: the shell around `decide`. Every write names the generation that the job was claimed with.

Each round reads the rows and does the one thing that they ask for, so there is no memory that a dying worker could lose. The
model and the tools are waited for without a database connection, and left when the job's end is asked for, when its time is
up, when somebody else holds it, and when this process ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from base.backoff import Backoff
from work import services
from work.conf import work_settings
from work.deep_work import calling
from work.deep_work.answers import Answer, AnswerReader, ProtocolViolation, Unfinished
from work.deep_work.decide import (
    WALL_CLOCK,
    Ask,
    CarryOut,
    Commit,
    End,
    Refuse,
    Then,
    after_answer,
    next_action,
)
from work.deep_work.dialogue import dialogue, shown
from work.deep_work.instructions import INSTRUCTIONS
from work.deep_work.ledger import Ledger
from work.deep_work.stop import Stop, Stopped, StopReason
from work.deep_work.views import HOST, JobView, Policy, StepView, step_view, tokens_of, view_of
from work.deep_work.waiting import TookTooLong, events_of, result_of
from work.deep_work.writer import TextWriter
from work.errors import InvalidToolOutcome, JobFenced, JobNotAcceptingSteps, JobNotFound
from work.model_client import ModelClient, ModelError, ModelRequest, Trouble
from work.models import Job
from work.prices import cost_microusd, price_of
from work.states import JobStatus, StepStatus
from work.tools import Registry, Tool
from work.usage import counted, estimated

log = structlog.get_logger(__name__)

AGAIN = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=60))
TOOL_GRACE_SECONDS = 10.0
"""How long a tool may go on when this process ends; what is not done by then is known to be interrupted."""

TIME_IS_UP = End(JobStatus.BUDGET_EXHAUSTED, WALL_CLOCK)
_MESSAGES = {
    "invalid_tool_arguments": "The arguments are longer than 262,144 bytes. Send less, or in several calls.",
    "work_recursion_refused": "A job never starts another job. Do the work yourself, with the tools that you have.",
}


class Left(StrEnum):
    """How a worker leaves a job."""

    ENDED = "ended"
    RELEASED = "released"  # given back, to be taken up again later
    LOST = "lost"  # somebody else holds it


@dataclass(frozen=True, slots=True)
class Look:
    """The job as its rows stand, and until when there is time, on this machine's steady clock."""

    job: Job
    view: JobView
    now: datetime
    until: float


_LOOK = """
    select job.*, clock_timestamp() as now, visitor.user_id as owner_user_id
    from work_jobs job join visitors visitor on visitor.id = job.owner_visitor_id where job.id = %s
"""


class DeepWork:
    """Drives the job that this worker has claimed, until it ends or is to be left."""

    def __init__(
        self, job: Job, *, ledger: Ledger, stop: Stop, client: ModelClient, registry: Registry
    ) -> None:
        self._id: UUID = job.pk
        self._generation: int = job.generation
        self._ledger, self._stop, self._client, self._registry = ledger, stop, client, registry
        self._conf = work_settings()
        self._policy = Policy.of(self._conf)
        self._catalog_digest = registry.digest()
        self._until = math.inf

    def run(self) -> Left:
        """Go on where the rows stand. Raises what nobody expected; the job is then to be given back."""
        try:
            self._ledger(self._close_interrupted)
            while True:
                left = self._round()
                if left is not None:
                    return left
        except (JobFenced, JobNotAcceptingSteps):
            return Left.LOST

    def _round(self) -> Left | None:
        """One thing; how the job is left, if it is."""
        look = self._ledger(self._look)
        if look.job.is_terminal:
            return Left.ENDED
        if self._stop.is_set and look.view.cancel_code is None:
            return self._release()
        match next_action(look.view, look.now, self._policy):
            case End() as end:
                return self._end(end)
            case CarryOut(step):
                return self._carry_out(look, step)
            case Ask() as ask:
                return self._ask(look, ask)

    # --- the rows ---

    def _look(self) -> Look:
        job = next(iter(Job.objects.raw(_LOOK, [self._id])), None)
        if job is None:
            raise JobNotFound
        if job.generation != self._generation:
            raise JobFenced
        now: datetime = job.now  # type: ignore[attr-defined]  # comes with the row
        view = view_of(job, services.list_job_steps(job))
        left = (view.started_at + self._policy.wall_clock - now).total_seconds()
        # A clock that is set back gives no more time than there was.
        self._until = min(self._until, time.monotonic() + left)
        gone = timedelta(seconds=left - (self._until - time.monotonic()))
        return Look(job, view, max(now, now + gone), self._until)

    def _close_interrupted(self) -> None:
        services.interrupt_running_steps(
            self._id, self._generation, repeatable_tools=self._registry.repeatable()
        )

    def _release(self) -> Left:
        given = self._ledger(lambda: services.release(self._id, self._generation))
        return Left.RELEASED if given == "ok" else Left.LOST

    def _end(self, end: End) -> Left:
        return self._ledger(lambda: self._finish(end))

    def _finish(self, end: End) -> Left:
        services.finish_job(
            self._id,
            end.status,
            error_code=end.code,
            final_text=end.final_text,
            generation=self._generation,
        )
        return Left.ENDED

    def _failed(self, look: Look, error: ModelError | Unfinished) -> Left:
        """The model did not answer: the job ends, or is given back to be tried again."""
        if isinstance(error, ModelError) and error.kind == Trouble.REFUSED:
            return self._end(End(JobStatus.FAILED, error.code))
        asked = error.retry_after_seconds if isinstance(error, ModelError) else None
        delay = AGAIN.after(look.job.failures + 1).total_seconds() if asked is None else asked
        delay = max(0.0, min(delay, look.until - time.monotonic()))
        job = self._ledger(
            lambda: services.record_failure(self._id, self._generation, error.code, delay_seconds=delay)
        )
        log.info("model_failed", job=str(self._id), code=error.code, again_in=round(delay, 1))
        return Left.ENDED if job.is_terminal else Left.RELEASED

    # --- the model ---

    def _ask(self, look: Look, ask: Ask) -> Left | None:
        offset, text = look.view.offset, look.view.text
        writer = TextWriter(
            self._ledger, self._id, self._generation, offset, replaces=len(text.encode()) > offset
        )
        reader = AnswerReader()
        try:
            answer = self._answer(look, ask, writer, reader)
        except Stopped:
            if self._stop.reason == StopReason.FENCED:
                raise JobFenced from None
            self._broken_off(look, reader, writer)
            return None  # the next round says why
        except TookTooLong:
            self._broken_off(look, reader, writer)
            return self._end(TIME_IS_UP)
        except (ModelError, Unfinished) as error:
            self._broken_off(look, reader, writer, error.usage if isinstance(error, ModelError) else {})
            return self._failed(look, error)
        except ProtocolViolation as violation:
            self._broken_off(look, reader, writer)
            return self._end(End(JobStatus.FAILED, violation.code))
        self._ledger.take_turn()
        then = self._ledger(lambda: self._settle(look, answer, writer))
        return self._carry_out(look, then) if isinstance(then, StepView) else then

    def _answer(self, look: Look, ask: Ask, writer: TextWriter, reader: AnswerReader) -> Answer:
        request = ModelRequest(
            model=self._conf.model,
            instructions=INSTRUCTIONS,
            items=dialogue(look.view, most_bytes=self._conf.dialogue_bytes, limit_code=ask.limit_code),
            offers=self._registry.offers(calling.authority_of(look.job)) if ask.offers_tools else (),
        )
        for event in events_of(lambda: self._client.stream(request), stop=self._stop, until=look.until):
            writer.add(reader.feed(event))
            if reader.is_done:
                break
        return reader.answer()

    def _broken_off(
        self, look: Look, reader: AnswerReader, writer: TextWriter, told: Mapping[str, Any] | None = None
    ) -> None:
        """What there is of an answer is written down with what it used: by what the server told, or else by its size."""
        answer = replace(reader.so_far, usage=told or reader.so_far.usage)
        usage = self._counted(look, answer) if reader.has_begun or told else {}
        self._ledger(lambda: self._write_broken(writer, usage))

    def _write_broken(self, writer: TextWriter, usage: Mapping[str, Any]) -> None:
        with transaction.atomic():
            writer.flush()
            if tokens_of(usage) and services.record_usage(self._id, self._generation, usage) != "ok":
                raise JobFenced

    def _settle(self, look: Look, answer: Answer, writer: TextWriter) -> Left | StepView | None:
        """A whole answer with what it leads to, in one transaction: it counts once, or it is asked for again.

        The call that it leads to, if it is to be carried out.
        """
        is_counted, usage = bool(look.view.steps), self._counted(look, answer)
        with transaction.atomic():
            writer.flush()
            if services.record_continuation(self._id, self._generation, usage, counted=is_counted) != "ok":
                raise JobFenced
            return self._then(after_answer(look.view.after(usage), answer, self._policy), answer)

    def _counted(self, look: Look, answer: Answer) -> dict[str, Any]:
        price = price_of(self._conf.model, self._conf.model_prices)
        usage = counted(answer.usage)
        if look.view.has_budget and not tokens_of(usage):
            usage |= estimated(shown(look.view, self._conf.dialogue_bytes), answer.words)
        return usage if price is None else usage | {"cost_microusd": cost_microusd(usage, price)}

    def _then(self, then: Then, answer: Answer) -> Left | StepView | None:
        match then:
            case End() as end:
                return self._finish(end)
            case Commit(call, call_id):
                step = services.request_job_step(
                    self._id, self._generation, **self._as_step(call, call_id, answer)
                )
                return step_view(step)
            case Refuse(call, call_id, status, code):
                services.refuse_job_step(
                    self._id,
                    self._generation,
                    executor_id=HOST,
                    status=status,
                    code=code,
                    message=_MESSAGES.get(
                        code, "The call was not carried out: a limit of this job is reached."
                    ),
                    **self._as_step(call, call_id, answer),
                )
        return None

    def _as_step(self, call: Any, call_id: str, answer: Answer) -> dict[str, Any]:
        tool = self._registry.get(call.name)
        return {
            "provider_call_id": call_id,
            "tool_name": call.name,
            "arguments": call.arguments,
            "provider_item_id": call.item_id,
            "provider_response_id": answer.response_id,
            "tool_version": tool.version if tool else None,
            "catalog_digest": self._catalog_digest,
        }

    # --- the tools ---

    def _carry_out(self, look: Look, step: StepView) -> Left | None:
        try:
            outcome = self._outcome_of(look, step)
        except Stopped:
            return self._tool_left()
        except TookTooLong:
            return self._end(TIME_IS_UP)  # the job's own, and the step ends with it
        self._ledger(lambda: self._complete(step, outcome))
        return None

    def _complete(self, step: StepView, outcome: dict[str, Any]) -> None:
        try:
            services.complete_job_step(self._id, self._generation, step.id, outcome)
        except InvalidToolOutcome:
            log.exception("tool_result_invalid", tool=step.tool_name)
            unusable = calling.unusable(step, self._registry.get(step.tool_name))
            services.complete_job_step(self._id, self._generation, step.id, unusable)

    def _outcome_of(self, look: Look, step: StepView) -> dict[str, Any]:
        """Carry the call out, if it may be; what came of it. Raises Stopped, and TookTooLong for the job itself."""
        arguments = calling.checked(step, self._registry, calling.authority_of(look.job))
        tool = self._registry.get(step.tool_name)
        if tool is None or isinstance(arguments, calling.Problem):
            assert isinstance(arguments, calling.Problem), "a call of no tool is a problem"
            return calling.outcome_of_problem(step, tool, arguments)
        self._check_wanted(look)
        if step.status == StepStatus.REQUESTED:
            self._ledger(lambda: services.start_job_step(self._id, self._generation, step.id))
        until = time.monotonic() + tool.timeout_seconds
        try:
            result = self._result_of(look, tool, step, arguments, min(until, look.until))
        except Stopped:
            raise
        except TookTooLong:
            if look.until <= until:
                raise
            return calling.outcome_of_problem(step, tool, calling.timed_out(tool))
        except Exception as error:
            return calling.outcome_of_problem(step, tool, calling.problem_of(error, tool))
        return calling.outcome_of_result(step, tool, result, self._conf.tool_result_bytes)

    def _check_wanted(self, look: Look) -> None:
        """A call is not begun after the end was asked for or came. Raises Stopped and TookTooLong."""
        if self._stop.is_set:
            raise Stopped
        if time.monotonic() >= look.until:
            raise TookTooLong

    def _result_of(
        self, look: Look, tool: Tool, step: StepView, arguments: dict[str, Any], until: float
    ) -> Any:
        inner = Stop()
        owner: UUID | None = look.job.owner_user_id  # type: ignore[attr-defined]  # comes with the row
        call = calling.invocation(look.job, owner, step, arguments, inner)
        return result_of(
            lambda: tool.execute(call),
            stop=self._stop,
            inner=inner,
            until=until,
            grace_seconds=TOOL_GRACE_SECONDS,
        )

    def _tool_left(self) -> Left | None:
        """The call is not waited for any more. It stays running: what took effect of it is not known."""
        if self._stop.reason == StopReason.FENCED:
            raise JobFenced
        return self._release() if self._stop.reason == StopReason.LEAVING else None
