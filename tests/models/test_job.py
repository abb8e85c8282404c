"""A job, from its acceptance to report, by every writer and in any order."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from accounts.models import User
from base.pump import Holder
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.models.rows import EndingRow, assert_legal, attempted, check, history_of, refused, undone
from tests.models.tables import JOB_ACCOUNT, JOB_ENDS, JOB_IDENTITY, JOB_MOVES, JOB_ONCE, JOB_SHAPES
from tests.work.conftest import delegation_attributes, machine_for
from work.errors import InvalidTransition, JobFenced, JobHeld, JobTerminal, WorkError
from work.models import Job, Machine
from work.services import (
    append_report_delta,
    cancel_job,
    claim_for_run,
    create_job,
    finish_job,
    record_failure,
    release,
)

pytestmark = pytest.mark.django_db
AGES = st.integers(0, 2)
EQUAL_FAILURES = 5


class OneJob(EndingRow):
    """`age` is how many claims a writer is behind: only 0 may write."""

    model = Job
    ends, identity, story = JOB_ENDS, JOB_IDENTITY, JOB_ACCOUNT
    lawful: ClassVar[dict[str, str]] = {}
    misshapen = JOB_SHAPES
    conversation: Conversation
    computer: Machine
    theirs: Conversation
    their_computer: Machine

    @initialize()
    def accept(self) -> None:
        made = create_job(
            conversation_id=self.conversation.pk,
            owner_visitor_id=self.conversation.visitor_id,
            goal=f"do it {uuid.uuid4()}",
        )
        self.row_id, self.state, self.generation = made.pk, "queued", 0
        self.held = self.cancel_asked = False
        self.failures = 0

    def answer(self, write: Any, *refusals: type[WorkError] | None) -> Any:
        """What the write answers; None if it is refused as the first of `refusals` that is one says."""
        wanted = next((kind for kind in refusals if kind is not None), None)
        if wanted is None:
            return write()
        with pytest.raises(wanted):
            write()
        return None

    @rule(only_if_free=st.booleans())
    def claim(self, only_if_free: bool) -> None:
        refusal = JobTerminal if self.is_over else JobHeld if only_if_free and self.held else None
        if self.answer(lambda: claim_for_run(self.row_id, Holder(), only_if_free=only_if_free), refusal):
            self.state, self.held, self.generation = "running", True, self.generation + 1

    @rule(age=AGES)
    def give_back(self, age: int) -> None:
        mine = self.state == "running" and age == 0
        assert release(self.row_id, self.generation - age) == ("ok" if mine else "fenced")
        self.held = self.held and not mine

    @rule(age=AGES)
    def append(self, age: int) -> None:
        mine = self.state == "running" and age == 0
        assert append_report_delta(self.row_id, self.generation - age, "x") == ("ok" if mine else "fenced")

    @rule(age=AGES)
    def fail_once(self, age: int) -> None:
        """The fifth failure of a kind in a row is the end; a job whose end was asked for is cancelled by its first."""
        mine = self.state == "running" and age == 0
        write = lambda: record_failure(self.row_id, self.generation - age, "model_unavailable")  # noqa: E731
        if self.answer(write, None if mine else JobFenced) is None:
            return
        self.failures, self.held = self.failures + 1, False
        if self.cancel_asked:
            self.state = "cancelled"
        elif self.failures >= EQUAL_FAILURES:
            self.state = "failed"

    @rule(age=AGES, end=st.sampled_from(sorted(JOB_ENDS)), final=st.sampled_from([None, "word"]))
    def finish(self, age: int, end: str, final: str | None) -> None:
        fenced = JobFenced if age and not self.is_over else None
        illegal = None if self.is_over or end in JOB_MOVES[self.state] else InvalidTransition
        write = lambda: finish_job(self.row_id, end, final_text=final, generation=self.generation - age)  # noqa: E731
        if self.answer(write, fenced, illegal) and not self.is_over:
            self.state, self.held = end, False

    @rule()
    def cancel(self) -> None:
        """At once where nobody is at work, else a wish for whoever is."""
        cancel_job(self.row_id)
        if self.is_over:
            return
        self.cancel_asked = True
        self.state = self.state if self.held else "cancelled"

    @rule()
    def goes_only_its_ways(self) -> None:
        """Raw SQL goes the same ways; a state alone makes no end, which needs its report and its time."""
        whole = JOB_MOVES[self.state] if self.is_over else JOB_MOVES[self.state] - JOB_ENDS
        assert self.taken("status", [*JOB_MOVES, "paused"]) == whole

    @precondition(lambda self: self.state == "queued")
    @rule()
    def put_running(self) -> None:
        assert self.put("status", "running") is None
        self.state = "running"

    @rule(end=st.sampled_from(sorted(JOB_ENDS)))
    def put_end(self, end: str) -> None:
        """With both, it is one."""
        why = attempted(
            "update work_jobs set status = %s, report = 'told', completed_at = clock_timestamp(), lease_owner = null,"
            " lease_expires_at = null, next_step_at = null where id = %s",
            end, self.row_id,
        )  # fmt: skip
        assert (why is None) == (not self.is_over and end in JOB_MOVES[self.state]), why
        if why is None:
            self.state, self.held = end, False

    @rule()
    def is_its_conversations(self) -> None:
        """Neither is it given to somebody else, nor is another of somebody else put beside it; whoever writes is told that first."""
        theirs = {"conversation_id": self.theirs.pk, "owner_visitor_id": self.theirs.visitor_id}
        mine = Job.objects.filter(pk=self.row_id)
        for column, value in theirs.items():
            for why in (
                self.add_like({column: value}),
                self.put(column, value),
                refused(lambda: mine.update(**{column: value})),  # noqa: B023 - called at once
            ):
                assert "conversation owner mismatch" in str(why), why

    @rule()
    def is_delegated_to_its_owners_computer(self) -> None:
        """A delegation goes to a computer of the same account, and has the authority that the computer has."""
        wanted = delegation_attributes(self.conversation, self.computer, "delegate")
        with undone():
            assert self.add_like(wanted) is None
        why = self.add_like(delegation_attributes(self.conversation, self.their_computer, "delegate"))
        assert "machine owner mismatch" in str(why), why
        for key, other in {"machine_tier": "shell", "roots": ["/"], "machine_name": "another"}.items():
            why = self.add_like(wanted | {"authority_snapshot": wanted["authority_snapshot"] | {key: other}})
            assert "authority snapshot mismatch" in str(why), why
        assert "work_jobs_delegation_identity" in str(self.add_like(wanted | {"delegation": None}))

    @rule()
    def never_gets_younger(self) -> None:
        """An old holder cannot be made the newest again."""
        older = self.put("generation", self.generation - 1)
        assert "generation never decreases" in str(older) or self.is_over, older
        assert older is not None

    @invariant()
    def says_it_once(self) -> None:
        if hasattr(self, "row_id"):
            self.assert_said_once(JOB_ONCE)

    @rule()
    def stays(self) -> None:
        self.assert_stays()

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "state"):
            return
        row = self.row()
        assert (row.status, row.generation) == (self.state, self.generation)
        assert (row.lease_expires_at is not None) == self.held
        assert not self.is_over or row.report.strip()
        self.assert_same_account()

    def assert_history(self) -> None:
        states = history_of("work_jobs_history", "status", self.row_id)
        assert_legal(states, JOB_MOVES, "queued", self.state)
        self.assert_told("job", states)

    def assert_guarded(self) -> None:
        super().assert_guarded()
        self.goes_only_its_ways()
        self.is_its_conversations()
        self.is_delegated_to_its_owners_computer()
        self.never_gets_younger()
        self.stays()


def test_whatever_is_written_a_job_moves_from_its_acceptance_to_one_end(owner: User, stranger: User) -> None:
    check(
        OneJob,
        conversation=ensure_conversation(owner), computer=machine_for(owner, "mine"),
        theirs=ensure_conversation(stranger), their_computer=machine_for(stranger, "theirs"),
    )  # fmt: skip
