"""A tool call of a job from its request to one outcome, by every writer and in any order."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from base.pump import Holder
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.models.rows import EndingRow, attempted, check, undone
from tests.models.tables import STEP_ACCOUNT, STEP_ENDS, STEP_IDENTITY, STEP_MOVES, STEP_SHAPES
from tests.work.conftest import outcome_of
from work.errors import JobFenced, JobNotAcceptingSteps, StepOutcomeConflict, StepTerminal, WorkError
from work.models import JobStep
from work.services import (
    claim_for_run,
    complete_job_step,
    create_job,
    finish_job,
    interrupt_running_steps,
    request_job_step,
    start_job_step,
)

pytestmark = pytest.mark.django_db
AGES = st.integers(0, 2)
ENDS = st.sampled_from(sorted(STEP_ENDS))
OF_A_JOB = {"interrupted": "interrupted", "cancelled": "cancelled", "completed": "failed", "failed": "failed"}
"""How an open step ends with its job."""


class OneStep(EndingRow):
    """`state` is the step's; `age` is how many claims of its job a writer is behind: only 0 may write."""

    model = JobStep
    ends, identity, story = STEP_ENDS, STEP_IDENTITY, STEP_ACCOUNT
    lawful = {"sequence": 2, "provider_call_id": "another"}
    misshapen = STEP_SHAPES
    unique = {"work_job_steps_sequence_index": "sequence", "work_job_steps_call_index": "provider_call_id"}
    conversation: Conversation

    @initialize()
    def request(self) -> None:
        job = create_job(
            conversation_id=self.conversation.pk, owner_visitor_id=self.conversation.visitor_id, goal=f"do it {uuid.uuid4()}"
        )  # fmt: skip
        self.job = job.pk
        self.generation = claim_for_run(job.pk, Holder()).generation
        made = request_job_step(self.job, self.generation, provider_call_id="call", tool_name="look")
        self.row_id, self.state = made.pk, "requested"
        self.goes_on, self.told = True, False

    def answer(self, write: Any, age: int, refusal: type[WorkError] | None = None) -> Any:
        """What the write answers; None if it is refused: for its job, its age, or as `refusal` says."""
        wanted = JobNotAcceptingSteps if not self.goes_on else JobFenced if age else refusal
        if wanted is None:
            return write()
        with pytest.raises(wanted):
            write()
        return None

    @precondition(lambda self: self.goes_on)
    @rule()
    def take_over(self) -> None:
        """Another worker claims the job: whoever was at work on the step is behind."""
        self.generation = claim_for_run(self.job, Holder()).generation

    @rule(age=AGES)
    def ask_again(self, age: int) -> None:
        """The same call is the same step."""
        again = lambda: request_job_step(  # noqa: E731
            self.job, self.generation - age, provider_call_id="call", tool_name="look"
        )
        same = self.answer(again, age)
        assert same is None or same.pk == self.row_id

    @rule(age=AGES)
    def start(self, age: int) -> None:
        """Its one start is given once."""
        write = lambda: start_job_step(self.job, self.generation - age, self.row_id)  # noqa: E731
        given = self.answer(write, age, StepTerminal if self.is_over else None)
        if given is not None:
            assert given == ("already_running" if self.state == "running" else "started")
            self.state = "running"

    @rule(age=AGES, end=ENDS)
    def complete(self, age: int, end: str) -> None:
        """The first outcome stands: the same again changes nothing, another is refused."""
        outcome = outcome_of(self.row(), end)
        same = self.told and self.state == end
        write = lambda: complete_job_step(self.job, self.generation - age, self.row_id, outcome)  # noqa: E731
        if self.answer(write, age, StepOutcomeConflict if self.is_over and not same else None) is not None:
            self.state, self.told = end, True

    @rule(age=AGES)
    def interrupt(self, age: int) -> None:
        """What was at work when its worker went is closed: whether it took effect is not known."""
        write = lambda: interrupt_running_steps(self.job, self.generation - age)  # noqa: E731
        closed = self.answer(write, age)
        if closed is not None:
            assert [step.pk for step in closed] == ([self.row_id] if self.state == "running" else [])
            self.state = "interrupted" if closed else self.state

    @precondition(lambda self: self.goes_on)
    @rule(end=st.sampled_from(sorted(OF_A_JOB)), rarely=st.integers(0, 3))
    def finish_its_job(self, end: str, rarely: int) -> None:
        """With its job it ends, if it has not."""
        if rarely:
            return
        finish_job(self.job, end, final_text="word", generation=self.generation)
        self.state, self.goes_on = self.state if self.is_over else OF_A_JOB[end], False

    @rule()
    def goes_only_its_ways(self) -> None:
        """Raw SQL goes the same ways; a state alone makes neither a start nor an end, which need what belongs to them."""
        assert self.taken("status", [*STEP_MOVES, "paused"]) == {self.state}

    @rule(state=st.sampled_from(sorted(STEP_MOVES)))
    def put_whole(self, state: str) -> None:
        """With what belongs to it, it is taken where the table says so, and nowhere else."""
        with undone():
            why = attempted(f"update work_job_steps set {_WHOLE[state]} where id = %s", self.row_id)
        changes_nothing = state == self.state == "requested"
        allowed = state in STEP_MOVES[self.state] and (not self.is_over or changes_nothing)
        assert (why is None) == allowed, why

    @rule()
    def stays(self) -> None:
        assert "Cannot delete" in str(attempted("delete from work_job_steps where id = %s", self.row_id))

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "state"):
            return
        row = self.row()
        assert row.status == self.state
        assert (row.completed_at is not None) == self.is_over
        self.assert_same_account()

    def assert_guarded(self) -> None:
        super().assert_guarded()
        self.goes_only_its_ways()
        self.stays()


_TOLD = "completed_at = clock_timestamp(), outcome_digest = repeat('a', 64), executor_id = 'host'"
_WHOLE = {
    "requested": "status = 'requested', started_at = null",
    "running": "status = 'running', started_at = clock_timestamp()",
    "succeeded": f"status = 'succeeded', result = '{{}}', error = null, {_TOLD}",
    **{end: f"status = '{end}', result = null, error = '{{}}', {_TOLD}" for end in STEP_ENDS - {"succeeded"}},
}
"""A state and all that its shape needs."""


def test_whatever_is_written_a_step_moves_from_its_request_to_one_outcome(db: None) -> None:
    check(OneStep, conversation=ensure_conversation("steps"))
