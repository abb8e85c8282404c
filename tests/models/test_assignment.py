"""An attempt and its credential from admission to one end, by every writer and in any order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from accounts.models import User
from base.clock import database_now
from boxes.models import Box
from conversations.services import ensure_conversation
from forge import assignments, credentials
from forge.errors import InvalidCredential
from forge.models import Assignment, AssignmentCredential, Issue
from forge.services import create_issue, create_repository
from tests.models.rows import EndingRow, assert_legal, attempted, check, history_of, undone, without_trigger
from tests.models.tables import (
    ATTEMPT_ACCOUNT,
    ATTEMPT_ENDS,
    ATTEMPT_IDENTITY,
    ATTEMPT_LIVE,
    ATTEMPT_MOVES,
    CREDENTIAL_IDENTITY,
)

pytestmark = pytest.mark.django_db
ENDS = st.sampled_from(sorted(ATTEMPT_ENDS))


class OneAttempt(EndingRow):
    """`state`, its secrets (only the newest opens anything, and only while it lives), and whether its credential was revoked."""

    model = Assignment
    ends, identity, story = ATTEMPT_ENDS, ATTEMPT_IDENTITY, ATTEMPT_ACCOUNT
    owner: User
    issue: Issue
    box: Box

    @initialize()
    def admit(self) -> None:
        now = database_now()
        made = Assignment.objects.create(
            conversation=self.box.conversation,
            conversation_box=self.box,
            repository=self.issue.repository,
            issue=self.issue,
            requesting_principal={"type": "user", "id": str(self.owner.pk)},
            branch="agent/issue-1",
            command="true",
            admitted_at=now,
            deadline_at=now + timedelta(minutes=15),
            next_step_at=now,
        )
        secret = credentials.new_secret(made.pk)
        AssignmentCredential.objects.create(
            assignment=made, token_digest=secret.digest, last_four=secret.last_four, repository=made.repository,
            branch=made.branch, expires_at=made.deadline_at,
        )  # fmt: skip
        self.row_id, self.state, self.secrets = made.pk, "admitted", [secret.plaintext]
        self.revoked = False

    @rule()
    def start(self) -> None:
        answer, row = assignments.start_running(Assignment(pk=self.row_id))
        assert answer == (assignments.ALREADY_FINISHED if self.is_over else assignments.STARTED)
        self.state = self.state if self.is_over else "running"
        assert row.state == self.state

    @rule(end=ENDS)
    def finish(self, end: str) -> None:
        """The first end stands, and the credential dies with it."""
        ended = assignments.finish(Assignment(pk=self.row_id), end, reason="why")
        self.note_end(end)
        assert ended.state == self.state

    @rule()
    def cancel(self) -> None:
        assignments.cancel(self.row())
        self.note_end("cancelled")

    @rule()
    def expire_before_the_deadline(self) -> None:
        """Nothing expires early."""
        assignments.expire()

    @rule()
    def mint(self) -> None:
        """A new secret for whoever delivers it, while there is something to deliver it to."""
        secret = credentials.mint(self.row_id)
        assert (secret is None) == self.is_over
        self.secrets += [secret] if secret else []

    @rule(age=st.integers(0, 3))
    def authenticate(self, age: int) -> None:
        """The newest secret of a living attempt, and no other."""
        secret = self.secrets[max(0, len(self.secrets) - 1 - age)]
        if secret == self.secrets[-1] and not self.is_over:
            assert credentials.authenticate(secret).assignment_id == self.row_id
            return
        with pytest.raises(InvalidCredential):
            credentials.authenticate(secret)

    @rule()
    def goes_only_its_ways(self) -> None:
        """Raw SQL moves among the living states; a state alone makes no end, which needs its time."""
        whole = ATTEMPT_MOVES[self.state] if self.is_over else ATTEMPT_LIVE
        assert self.taken("state", [*ATTEMPT_MOVES, "lost"]) == whole

    @precondition(lambda self: self.state in ATTEMPT_LIVE)
    @rule(state=st.sampled_from(sorted(ATTEMPT_LIVE)))
    def put_state(self, state: str) -> None:
        assert self.put("state", state) is None
        self.state = state

    @rule(end=ENDS)
    def put_end(self, end: str) -> None:
        """With its time it is one: the credential opens nothing any more, revoked or not."""
        why = attempted(
            "update forge_assignments set state = %s, finished_at = clock_timestamp() where id = %s", end, self.row_id
        )  # fmt: skip
        assert (why is None) == (not self.is_over), why
        self.state = end if why is None else self.state

    @rule()
    def put_revoked(self) -> None:
        """A living attempt cannot be robbed of its credential, and a revoked one does not come back."""
        why = self.on_credential("revoked_at = clock_timestamp()")
        assert (why is None) == (self.is_over and not self.revoked), why
        self.revoked = self.revoked or why is None
        why = self.on_credential("revoked_at = null")
        assert (why is None) == (not self.revoked), why

    @precondition(lambda self: self.revoked)
    @rule()
    def gets_no_new_secret(self) -> None:
        assert "no new secret" in str(self.on_credential("token_digest = decode(repeat('07', 32), 'hex')"))

    @rule(column=st.sampled_from(CREDENTIAL_IDENTITY))
    def its_credential_keeps_its_own(self, column: str) -> None:
        value = "true" if column == "branch" else None
        why = self.on_credential(f"{column} = {'%s' if value else 'null'}", *([value] if value else []))
        assert "credential identity is immutable" in str(why)

    @rule()
    def stays(self) -> None:
        self.assert_stays()
        gone = attempted("delete from forge_assignment_credentials where assignment_id = %s", self.row_id)
        assert gone is not None

    @precondition(lambda self: self.is_over)
    @rule()
    def a_second_line_holds(self) -> None:
        """Were an ended attempt let go on, its time and its dead credential would still not let it."""
        back = "update forge_assignments set state = 'running', finished_at = null where id = %s"
        with without_trigger("forge_assignments", "assignment_2_terminal"):
            assert "an assignment ends once" in str(attempted(back, self.row_id))
            attempted("update forge_assignment_credentials set revoked_at = clock_timestamp() where assignment_id = %s and revoked_at is null", self.row_id)  # fmt: skip
            with without_trigger("forge_assignments", "assignment_4_once"):
                assert "live assignment with a revoked credential" in str(attempted(back, self.row_id))

    @rule(other=st.sampled_from(["issue_id", "conversation_box_id"]))
    def is_alone(self, other: str) -> None:
        """While it lives, nobody else has its issue or its box."""
        with undone():
            why = attempted(
                "insert into forge_assignments (id, target_kind, conversation_id, conversation_box_id, repository_id, issue_id,"
                " requesting_principal, branch, state, credential_delivery_status, admitted_at, deadline_at, step_failures,"
                " generation) select gen_random_uuid(), target_kind, conversation_id, conversation_box_id, repository_id, issue_id,"
                " requesting_principal, branch, 'admitted', credential_delivery_status, admitted_at, deadline_at, 0, 0"
                " from forge_assignments where id = %s",
                self.row_id,
            )
        assert (why is None) == self.is_over, why

    def on_credential(self, assignment: str, *values: Any) -> str | None:
        return attempted(
            f"update forge_assignment_credentials set {assignment} where assignment_id = %s", *values, self.row_id
        )  # fmt: skip

    def note_end(self, end: str) -> None:
        if not self.is_over:
            self.state, self.revoked = end, True

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "state"):
            return
        row = Assignment.objects.select_related("credential").get(pk=self.row_id)
        assert (row.state, row.credential.revoked_at is not None) == (self.state, self.revoked)
        self.assert_same_account()

    def assert_history(self) -> None:
        states = history_of("forge_assignments_history", "state", self.row_id)
        assert_legal(states, ATTEMPT_MOVES, "admitted", self.state)


def test_whatever_is_written_an_attempt_moves_from_its_admission_to_one_end(
    owner: User, settings: Any, tmp_path: Any
) -> None:
    settings.FORGE = {"storage_root": str(tmp_path)}
    issue = create_issue(create_repository(owner, "project"), title="Mend it", body="")
    box = Box.objects.create(
        conversation=ensure_conversation(owner), box_id="bx_8bhkse3n", state="ready", setup_status="done"
    )

    check(OneAttempt, owner=owner, issue=issue, box=box)
