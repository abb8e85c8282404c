"""What the decision knows of a job, its steps and its limits: plain values, read from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from work.arguments import exact
from work.conf import WorkSettings, work_settings
from work.models import Job, JobStep
from work.prices import price_of, tokens
from work.states import StepStatus


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits in force."""

    wall_clock: timedelta = timedelta(seconds=600)
    maximum_tool_calls: int = 32
    maximum_continuations: int = 32
    has_price: bool = True
    """Whether it is known what the model costs."""

    @classmethod
    def of(cls, conf: WorkSettings) -> Policy:
        return cls(
            timedelta(milliseconds=conf.wall_clock_ms),
            conf.maximum_tool_calls,
            conf.maximum_continuations,
            price_of(conf.model, conf.model_prices) is not None,
        )


@dataclass(frozen=True, slots=True)
class StepView:
    """A committed tool call."""

    id: Any
    call_id: str
    tool_name: str
    arguments: str
    """As they are shown: without secrets."""
    status: StepStatus
    error_code: str | None = None
    is_hosts: bool = False
    """Whether the loop itself ended it, rather than its tool."""
    report_offset: int = 0
    result: Any = field(default=None, repr=False)
    error: Any = field(default=None, repr=False)
    exact: str | None = field(default=None, repr=False)
    """As the model wrote them, of an open call; None where they cannot be had any more."""

    @property
    def is_open(self) -> bool:
        return self.status in (StepStatus.REQUESTED, StepStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class JobView:
    """A running job that this worker holds, with its steps in order."""

    goal: str
    context_hint: str
    started_at: datetime
    text: str = ""
    tool_call_count: int = 0
    continuation_count: int = 0
    tokens_used: int = 0
    cost_microusd: int = 0
    token_budget: int | None = None
    cost_budget_microusd: int | None = None
    cancel_code: str | None = None
    """Set once the job's end was asked for."""
    steps: Sequence[StepView] = ()

    @property
    def has_budget(self) -> bool:
        return self.token_budget is not None or self.cost_budget_microusd is not None

    @property
    def offset(self) -> int:
        """Where the text of the next answer begins: after everything that came before the newest call, in bytes."""
        return self.steps[-1].report_offset if self.steps else 0

    def after(self, usage: Mapping[str, Any]) -> JobView:
        """The job with one more answer that used so much."""
        return replace(
            self,
            continuation_count=self.continuation_count + (1 if self.steps else 0),
            tokens_used=self.tokens_used + tokens_of(usage),
            cost_microusd=self.cost_microusd + tokens(usage, "cost_microusd"),
        )


def tokens_of(usage: Mapping[str, Any]) -> int:
    """What counts against a budget of tokens."""
    return tokens(usage, "input_tokens") + tokens(usage, "output_tokens")


HOST = "job_server"
"""The executor of a step that the loop itself ended."""


def view_of(job: Job, steps: Sequence[JobStep]) -> JobView:
    """The rows as the decision sees them. No query."""
    assert job.started_at is not None, "a job that a worker holds has started"
    return JobView(
        goal=job.goal,
        context_hint=job.context_hint or "",
        started_at=job.started_at,
        text=job.report or "",
        tool_call_count=job.tool_call_count,
        continuation_count=job.continuation_count,
        tokens_used=tokens_of(job.usage),
        cost_microusd=tokens(job.usage, "cost_microusd"),
        token_budget=job.token_budget,
        cost_budget_microusd=job.cost_budget_microusd,
        cancel_code=(job.cancel_code or "cancelled") if job.cancel_requested_at else None,
        steps=[step_view(step) for step in steps],
    )


def policy_in_force() -> Policy:
    return Policy.of(work_settings())


def step_view(step: JobStep) -> StepView:
    """The row as the decision sees it. No query."""
    return StepView(
        exact=None if step.is_terminal else exact(step),
        id=step.pk,
        call_id=step.provider_call_id,
        tool_name=step.tool_name,
        arguments=step.arguments,
        status=StepStatus(step.status),
        error_code=step.error.get("code") if isinstance(step.error, dict) else None,
        is_hosts=step.executor_id == HOST,
        report_offset=step.report_offset,
        result=step.result,
        error=step.error,
    )
