"""A box's row from its reservation to its one stop, by every writer and in any order."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from accounts.models import User
from base.pump import Holder
from boxes import admission
from boxes.client.observations import parse_box
from boxes.conf import box_api
from boxes.ending import forget_box
from boxes.errors import BoxStopped
from boxes.models import Box, FanoutItem, FanoutRequest
from boxes.provisioning import ledger
from boxes.provisioning.driver import task_of
from boxes.provisioning.steps import Step
from boxes.states import StopReason
from boxes.stopping import claim_stop, complete_stop, withdraw_stop
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.models.rows import OneRow, attempted, check, events_of, history_of, undone
from tests.models.tables import BOX_COST, BOX_DOWN, BOX_END, BOX_IDENTITY, BOX_SHAPES, BOX_STATES

pytestmark = pytest.mark.django_db
AGES = st.integers(0, 2)
REASONS = st.sampled_from([StopReason.USER_REQUESTED, StopReason.TTL_EXPIRED])
UP = "ready"


class OneBox(OneRow):
    """`bound`: the provider's id is known. `asked`: the provider was asked for the box. `claim`: a stop was asked for.

    `age` is how many leases a writer is behind: only 0 may write.
    """

    model = Box
    lawful = {"label": "another", "box_id": None, "create_key": None}
    misshapen, unique = BOX_SHAPES, {"conversation_boxes_create_key_key": "create_key"}
    conversation: Conversation
    staff: User

    @initialize(asked=st.booleans())
    def reserve(self, asked: bool) -> None:
        made = admission.write_reservation(
            admission.Tenant(self.conversation.pk, None),
            label=f"box-{uuid.uuid4().hex[:8]}",
            limits=admission.Limits.of(box_api(), budgeted=False),
            budgeted=False,
            leased=asked,
        )
        self.row_id, self.state, self.generation = made.pk, "provisioning", int(asked)
        self.asked = self.held = asked
        self.bound = self.marked = self.claim = self.over = self.settled = False
        self.claimed: Box | None = None
        self.end: Any = None
        self.item = self.planned(made)

    def planned(self, box: Box) -> FanoutItem:
        """The item of a plan that the box is of."""
        plan = FanoutRequest.objects.create(
            conversation=self.conversation, requesting_principal={}, requested_count=1, effective_limits={}
        )
        return FanoutItem.objects.create(
            request=plan, conversation=self.conversation, position=0, queue_sequence=uuid.uuid4().int >> 66, label=box.label,
            state="admitted", box=box, requesting_principal={},
        )  # fmt: skip

    def leased(self, age: int, step: Step) -> Any:
        """The task of a writer of this age."""
        box = self.row()
        box.generation = self.generation - age
        return task_of(box, step, "our-name", attempts_before=1)

    @rule()
    def lease(self) -> None:
        """Whoever leases a due row holds it, and nobody else meanwhile; a claimed or stopped row is not for the taking."""
        due = self.row().next_provision_at
        rows = [box for box in ledger.lease_due(Holder(), 100) if box.pk == self.row_id]
        assert not (rows and (self.held or self.over or due is None))
        if rows:
            self.held, self.generation = True, self.generation + 1

    @rule(age=AGES)
    def ask(self, age: int) -> None:
        box = Box(pk=self.row_id, generation=self.generation - age)
        noted = bool(ledger.note_attempts([box]))
        assert noted == (age == 0 and not self.bound)
        self.asked = self.asked or noted

    @rule(age=AGES)
    def bind(self, age: int) -> None:
        """The id is written under the newest lease; on a row that was closed meanwhile it is written in any case."""
        shown = parse_box({"state": UP, "setupStatus": None}, f"bx_{uuid.uuid4().hex[:8]}")
        wins = age == 0 and self.held and not self.bound and not self.over
        assert ledger.bind(self.leased(age, Step.CREATE), shown) == wins
        self.bound = self.bound or wins or self.over
        if wins:
            self.state, self.held = UP, False

    @rule(age=AGES)
    def mark(self, age: int) -> None:
        wins = age == 0 and self.held
        shown = parse_box({"state": UP}, "bx_any")
        assert ledger.mark(self.leased(age, Step.MARK), shown) == wins
        self.held, self.marked = self.held and not wins, self.marked or wins

    @rule(reason=REASONS)
    def claim_stop(self, reason: StopReason) -> None:
        """One claimant; for a row without an id the wish is noted, and what was never asked for just ends."""
        box = self.row()
        answer = claim_stop(box, reason)
        if self.over:
            assert answer == "already_stopped"
        elif not self.bound and not self.asked:
            assert answer == "already_stopped"
            self.note_end("archived", reason)
            self.settled = True
        elif self.claim or not self.bound:
            assert answer == "in_flight"
            self.claim = True
        else:
            assert answer == "claimed"
            self.claim, self.claimed = True, box
            self.held, self.generation = False, self.generation + 1

    @precondition(lambda self: self.claimed is not None)
    @rule()
    def withdraw(self) -> None:
        """Whoever claimed may give the claim back, once, while the row is not stopped."""
        box, self.claimed = self.claimed, None
        assert box is not None
        wins = withdraw_stop(box)
        assert wins == (self.claim and not self.over)
        self.claim = self.claim and not wins

    @precondition(lambda self: self.bound)
    @rule(reason=REASONS, by_pass=st.booleans())
    def complete(self, reason: StopReason, by_pass: bool) -> None:
        """Of all who say that it is stopped, one ends the row."""
        assert complete_stop(Box(pk=self.row_id), reason, None, by_pass=by_pass) == (not self.over)
        if not self.over:
            self.note_end("archiving", reason)

    @rule()
    def forget(self) -> None:
        if self.over:
            with pytest.raises(BoxStopped):
                forget_box(self.row(), by=self.staff)
            return
        forget_box(self.row(), by=self.staff)
        self.note_end("error", StopReason.FORGOTTEN)

    @rule(state=st.sampled_from(sorted(BOX_STATES)))
    def put_state(self, state: str) -> None:
        """The provider may say anything of a box, but one that is stopped only goes down."""
        allowed = BOX_DOWN | {self.state} if self.over else BOX_STATES
        assert self.taken("state", [*BOX_STATES, "paused", ""]) == allowed
        if state in allowed:
            assert self.put("state", state) is None
            self.state = state

    @rule()
    def is_only_seen_going_down(self) -> None:
        """From its stop on, whatever it was before."""
        with undone():
            why = attempted(
                "update conversation_boxes set stopped_at = coalesce(stopped_at, clock_timestamp()) where id = %s",
                self.row_id,
            )
            assert why is None, why
            assert self.taken("state", BOX_STATES) == BOX_DOWN | {self.state}
            self.assert_kept(["stopped_at"])

    @rule(column=st.sampled_from(BOX_END))
    def put_end(self, column: str) -> None:
        """When, why and after how long it was stopped is said once."""
        assert (self.probe(column) is None) == (not self.over)

    @rule(column=st.sampled_from(BOX_COST))
    def put_cost(self, column: str) -> None:
        """What it cost is said once."""
        assert (self.probe(column) is None) == (not self.settled)

    @rule()
    def settle(self) -> None:
        why = attempted(
            "update conversation_boxes set settled_cost_microusd = 7, usage_settled_at = clock_timestamp() where id = %s",
            self.row_id,
        )
        assert (why is None) == (not self.settled), why
        self.settled = True

    @rule()
    def is_one_box_for_ever(self) -> None:
        self.assert_kept([*BOX_IDENTITY, "create_key"])
        assert (self.probe("box_id") is None) == (not self.bound)

    @rule()
    def is_alone(self) -> None:
        """No other row is of its box; and while it is up, none of its conversation has its label."""
        for column, is_its_own in (("box_id", self.bound), ("label", not self.over)):
            with undone():
                why = self.add_like({}, same=column)
            assert (why is None) == (not is_its_own), why

    @rule()
    def stays(self) -> None:
        """Only a reservation that came to nothing is deleted."""
        with undone():
            attempted("update box_fanout_items set conversation_box_id = null where id = %s", self.item.pk)
            why = attempted("delete from conversation_boxes where id = %s", self.row_id)
        assert (why is None) == (not self.bound and not self.over), why
        assert "referenced in a foreign key" in str(attempted("truncate conversation_boxes"))

    def note_end(self, state: str, reason: str) -> None:
        self.state, self.over, self.end = state, True, None
        self.claim = self.held = False
        self.generation += 1
        self.reason = str(reason)

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "state"):
            return
        row = self.row()
        assert (row.state, row.generation) == (self.state, self.generation)
        assert (row.box_id is not None, row.marked_at is not None) == (self.bound, self.marked)
        assert (row.stopped_at is not None, row.usage_settled_at is not None) == (self.over, self.settled)
        assert (row.stop_requested_at is not None, row.lease_expires_at is not None) == (
            self.claim,
            self.held,
        )
        self.item.refresh_from_db()
        assert self.item.released_at == row.stopped_at, "its label is free from its end on"
        if self.over:
            end = (row.stopped_at, row.stop_reason, row.lifetime_seconds)
            self.end = self.end or end
            assert end == self.end
            assert row.stop_reason == self.reason

    def assert_history(self) -> None:
        """Once a row says that it is stopped, its box is only seen going down, and the last entry is the row."""
        table = "conversation_boxes_history"
        states = history_of(table, "state", self.row_id)
        stopped = [moment is not None for moment in history_of(table, "stopped_at", self.row_id)]
        assert (states[-1], stopped[-1]) == (self.state, self.over)
        assert stopped == sorted(stopped)
        assert {state for state, is_stopped in zip(states, stopped, strict=True) if is_stopped} <= BOX_DOWN
        events = events_of(self.row_id)
        assert events[0] == "box.created"
        assert (events.count("box.stopped"), events.count("box.settled")) == (self.over, self.settled)

    def assert_guarded(self) -> None:
        self.is_only_seen_going_down()
        for column in BOX_END:
            assert (self.probe(column) is None) == (not self.over)
        for column in BOX_COST:
            assert (self.probe(column) is None) == (not self.settled)
        self.is_one_box_for_ever()
        self.is_alone()
        self.stays()


def test_whatever_is_written_a_box_is_stopped_once(owner: Any, staff: Any) -> None:
    check(OneBox, conversation=ensure_conversation(owner), staff=staff)
