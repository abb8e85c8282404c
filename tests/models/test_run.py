"""A run from its admission to one end, by every writer and in any order."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from base.clock import database_now
from base.pump import Holder
from boxes.models import Box
from conversations.services import ensure_conversation
from runs.driver import claim
from runs.models import Run
from runs.services import cancel, finish, record_poll
from tests.models.rows import EndingRow, assert_legal, check, history_of, undone
from tests.models.tables import RUN_ACCOUNT, RUN_ENDS, RUN_IDENTITY, RUN_MOVES, RUN_ONCE, RUN_SHAPES

pytestmark = pytest.mark.django_db
LIVE = frozenset(RUN_MOVES) - RUN_ENDS


class OneRun(EndingRow):
    """`state`, whether somebody holds it, whether the right to dispatch was given, and what was once said of it."""

    model = Run
    ends, identity, story = RUN_ENDS, RUN_IDENTITY, RUN_ACCOUNT
    lawful = {"state": "completed", "idempotency_key": "another"}
    misshapen, unique = RUN_SHAPES, {"box_runs_conversation_key_index": "idempotency_key"}
    box: Box

    @initialize()
    def admit(self) -> None:
        now = database_now()
        made = Run.objects.create(
            conversation=self.box.conversation,
            conversation_box=self.box,
            requesting_principal={"type": "user", "id": "tester"},
            command="true",
            idempotency_key=str(uuid.uuid4()),
            run_directory=f"/tmp/{uuid.uuid4()}",
            admitted_at=now,
            deadline_at=now + timedelta(minutes=10),
        )
        self.row_id, self.state, self.generation = made.pk, "admitted", 0
        self.held = self.dispatch_given = self.cancel_asked = False
        self.kill: bool | None = None

    @rule()
    def claim(self) -> None:
        """Whoever claims a free run holds it; the right to dispatch is given to one claimant, ever."""
        claimed = claim.claim_one(self.row_id, Holder())
        if self.held:
            assert claimed is None
            return
        assert claimed is not None
        may = self.state == "admitted" and not self.dispatch_given and not self.cancel_asked
        assert claimed.view.may_dispatch == may
        self.dispatch_given = self.dispatch_given or may
        self.held, self.generation = True, self.generation + 1

    @rule(age=st.integers(0, 2))
    def give_back(self, age: int) -> None:
        """Only the newest holder's word counts."""
        claim.give_back([(self.row_id, self.generation - age)])
        self.held = self.held and age != 0

    @rule(age=st.integers(0, 2))
    def note_kill(self, age: int) -> None:
        sent = claim.mark([(self.row_id, self.generation - age)], kills=True)
        assert bool(sent) == (age == 0)
        if sent and self.kill is None:
            self.kill = False

    @rule()
    def poll(self) -> None:
        record_poll(self.row_id, {"present": True, "log_size": 0, "output": "", "alive": True})
        if not self.is_over:
            self.state, self.held, self.generation = "running", False, self.generation + 1

    @rule(end=st.sampled_from(sorted(RUN_ENDS)))
    def finish(self, end: str) -> None:
        """The first end stands."""
        answer = finish(self.row_id, end, exit_status=3, reason="why")
        if not self.is_over:
            self.state, self.held, self.generation = end, False, self.generation + 1
        assert answer.state == self.state

    @rule()
    def cancel(self) -> None:
        """A wish: no state changes by it, and its first time is kept. A look in flight is overtaken."""
        cancel(Run(pk=self.row_id))
        if self.is_over or self.cancel_asked:
            return
        if self.state != "admitted" and self.kill is None and self.row().exit_status is None:
            self.held, self.generation = False, self.generation + 1
        self.cancel_asked = True

    @rule()
    def goes_only_its_ways(self) -> None:
        """Raw SQL goes the same ways as everybody, from here and from wherever it may live next; the same again is none."""
        for state in {self.state} | RUN_MOVES[self.state] & LIVE:
            with undone():
                assert self.put("state", state) is None
                assert self.taken("state", [*RUN_MOVES, "paused", ""]) == RUN_MOVES[state] | {state}

    @rule(state=st.sampled_from(["dispatched", "dispatched", "running", "running", *sorted(RUN_ENDS)]))
    def put_state(self, state: str) -> None:
        if state in RUN_MOVES[self.state]:
            assert self.put("state", state) is None
            self.state = state

    @rule(confirmed=st.sampled_from([True, False, None]))
    def put_kill(self, confirmed: bool | None) -> None:
        """A kill that was confirmed stays confirmed."""
        allowed = self.kill is not True or confirmed is True
        assert (self.put("kill_confirmed", confirmed) is None) == allowed
        self.kill = confirmed if allowed else self.kill

    @rule()
    def takes_no_confirmation_back(self) -> None:
        with undone():
            assert self.put("kill_confirmed", True) is None
            for other in (False, None):
                assert "a confirmed kill stays confirmed" in str(self.put("kill_confirmed", other))

    @invariant()
    def says_it_once(self) -> None:
        if hasattr(self, "row_id"):
            self.assert_said_once(RUN_ONCE)

    @rule()
    def stays(self) -> None:
        self.assert_stays()

    @rule()
    def is_alone_on_its_box(self) -> None:
        """While it lives, no other run of its box does."""
        with undone():
            why = self.add_like({"state": "running"})
        assert (why is None) == self.is_over, why

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "state"):
            return
        row = self.row()
        assert (row.state, row.kill_confirmed, row.generation) == (self.state, self.kill, self.generation)
        assert (row.cancellation_requested_at is not None) == self.cancel_asked
        self.assert_same_account()

    def assert_history(self) -> None:
        states = history_of("box_runs_history", "state", self.row_id)
        assert_legal(states, RUN_MOVES, "admitted", self.state)
        self.assert_told("run", states)

    def assert_guarded(self) -> None:
        super().assert_guarded()
        self.goes_only_its_ways()
        self.takes_no_confirmation_back()
        self.stays()
        self.is_alone_on_its_box()


def test_whatever_is_written_a_run_moves_from_its_admission_to_one_end(owner: Any) -> None:
    box = Box.objects.create(
        conversation=ensure_conversation(owner), box_id="bx_8bhkse3n", state="ready", setup_status="done"
    )

    check(OneRun, box=box)
