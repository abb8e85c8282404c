"""Any order of calls by current and overtaken workers, against a model of what the ledger promises."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from conversations.models import Message
from conversations.services import ensure_conversation
from tests.work.conftest import outcome_of
from work.errors import (
    JobFenced,
    JobNotAcceptingSteps,
    JobTerminal,
    StepOutcomeConflict,
    StepTerminal,
    WorkError,
)
from work.models import Job
from work.services import (
    append_report_delta,
    cancel_job,
    claim_for_run,
    complete_job_step,
    create_job,
    finish_job,
    get_job,
    interrupt_running_steps,
    list_job_steps,
    recover_interrupted_jobs,
    request_job_step,
    start_job_step,
)
from work.states import TERMINAL, TERMINAL_STEPS

STEP_ENDS = [status.value for status in TERMINAL_STEPS]
CALLS = st.sampled_from(["a", "b", "c"])
AGES = st.integers(0, 2)


class OneJob(RuleBasedStateMachine):
    """`age` is how many takeovers a worker is behind: only 0 may write."""

    @initialize()
    def accept(self) -> None:
        conversation = ensure_conversation(str(uuid.uuid4()))
        self.job = create_job(
            conversation_id=conversation.pk, owner_visitor_id=conversation.visitor_id, goal="any order"
        )
        self.generation = 0
        self.status = "queued"
        self.text = ""
        self.steps: dict[str, str] = {}
        self.end: tuple[Any, ...] | None = None

    @property
    def is_over(self) -> bool:
        return self.end is not None

    def expected(self, age: int) -> type[WorkError] | None:
        """Why a step's write by a worker of this age is refused."""
        if self.status != "running":
            return JobNotAcceptingSteps
        return JobFenced if age else None

    def attempt(self, write: Any, *expected: type[WorkError] | None) -> Any:
        """What the write answers, or None if it is refused as it must be."""
        wanted = next((kind for kind in expected if kind is not None), None)
        if wanted is None:
            return write()
        with pytest.raises(wanted):
            write()
        return None

    @rule()
    def claim(self) -> None:
        claimed = self.attempt(lambda: claim_for_run(self.job.pk), JobTerminal if self.is_over else None)
        if claimed is not None:
            self.generation += 1
            self.status = "running"
            assert claimed.generation == self.generation

    @rule(age=AGES, text=st.sampled_from(["x", "é", "\0", ""]))
    def append(self, age: int, text: str) -> None:
        answer = append_report_delta(self.job.pk, self.generation - age, text)
        is_held = self.status == "running" and age == 0
        assert answer == ("ok" if is_held else "fenced")
        self.text += text.replace("\0", "␀") if is_held else ""

    @rule(age=AGES, call=CALLS)
    def request(self, age: int, call: str) -> None:
        write = lambda: request_job_step(  # noqa: E731 - called or expected to be refused
            self.job.pk, self.generation - age, provider_call_id=call, tool_name="x", arguments="{}"
        )
        step = self.attempt(write, self.expected(age))
        if step is not None:
            self.steps.setdefault(call, "requested")
            assert step.status == self.steps[call]

    @precondition(lambda self: self.steps)
    @rule(age=AGES, data=st.data())
    def start(self, age: int, data: Any) -> None:
        call = data.draw(st.sampled_from(sorted(self.steps)))
        ended = StepTerminal if self.steps[call] in STEP_ENDS else None
        write = lambda: start_job_step(self.job.pk, self.generation - age, self.row(call).pk)  # noqa: E731
        answer = self.attempt(write, self.expected(age), ended)
        if answer is not None:
            assert answer == ("started" if self.steps[call] == "requested" else "already_running")
            self.steps[call] = "running"

    @precondition(lambda self: self.steps)
    @rule(age=AGES, status=st.sampled_from(STEP_ENDS), data=st.data())
    def complete(self, age: int, status: str, data: Any) -> None:
        call = data.draw(st.sampled_from(sorted(self.steps)))
        before, row = self.steps[call], self.row(call)
        differs = before in STEP_ENDS and (
            before != status or (row.error or {}).get("code") not in (None, "tool_failed")
        )
        write = lambda: complete_job_step(self.job.pk, self.generation - age, row.pk, outcome_of(row, status))  # noqa: E731
        if self.attempt(write, self.expected(age), StepOutcomeConflict if differs else None) is not None:
            self.steps[call] = status

    @rule(age=AGES)
    def interrupt(self, age: int) -> None:
        write = lambda: interrupt_running_steps(self.job.pk, self.generation - age)  # noqa: E731
        if self.attempt(write, self.expected(age)) is not None:
            self.steps = {
                call: "interrupted" if status == "running" else status for call, status in self.steps.items()
            }

    @rule(
        age=AGES,
        status=st.sampled_from([status.value for status in TERMINAL]),
        final=st.sampled_from([None, "word"]),
    )
    def finish(self, age: int, status: str, final: str | None) -> None:
        is_possible = (
            self.is_over or self.status == "running" or status in ("failed", "interrupted", "cancelled")
        )
        fenced = JobFenced if age and not self.is_over else None
        write = lambda: finish_job(self.job.pk, status, final_text=final, generation=self.generation - age)  # noqa: E731
        ended = self.attempt(write, fenced, None if is_possible else WorkError)
        if ended is not None:
            self.note_end(ended)

    @rule()
    def cancel(self) -> None:
        answer = cancel_job(self.job.pk)
        if answer.is_terminal:
            self.note_end(answer)
        else:
            assert self.status == "running"

    @rule()
    def recover(self) -> None:
        recover_interrupted_jobs()

    def note_end(self, ended: Job) -> None:
        """The first end stands for ever."""
        if self.end is None:
            self.end = (
                ended.status,
                ended.report,
                ended.error_code,
                ended.completed_at,
                ended.report_message_id,
            )
            self.status = ended.status
            kept = {"interrupted": "interrupted", "cancelled": "cancelled", "budget_exhausted": "cancelled"}
            closed = kept.get(ended.status, "failed")
            self.steps = {
                call: status if status in STEP_ENDS else closed for call, status in self.steps.items()
            }

    def row(self, call: str) -> Any:
        return next(step for step in list_job_steps(self.job) if step.provider_call_id == call)

    @invariant()
    def the_ledger_is_as_promised(self) -> None:
        if not hasattr(self, "job"):
            return
        job = get_job(self.job.pk)
        assert (job.status, job.generation, job.tool_call_count) == (
            self.status,
            self.generation,
            len(self.steps),
        )
        assert {step.provider_call_id: step.status for step in list_job_steps(job)} == self.steps
        if self.end is None:
            assert (job.report or "") == self.text
            return
        assert (job.status, job.report, job.error_code, job.completed_at, job.report_message_id) == self.end
        assert Message.objects.get(pk=job.report_message_id).content == job.report


@pytest.mark.django_db
def test_whatever_the_order_of_calls_the_ledger_is_as_promised() -> None:
    budget = settings(
        max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )

    run_state_machine_as_test(OneJob, settings=budget)
