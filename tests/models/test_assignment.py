"""An attempt and its credential from admission to one end, by every writer and in any order."""

from __future__ import annotations

import json
import uuid
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
from tests.models.rows import (
    EndingRow,
    assert_legal,
    attempted,
    check,
    history_of,
    undone,
    unreferenced,
    without_trigger,
)
from tests.models.tables import (
    ATTEMPT_ACCOUNT,
    ATTEMPT_ENDS,
    ATTEMPT_IDENTITY,
    ATTEMPT_LIVE,
    ATTEMPT_MOVES,
    ATTEMPT_SHAPES,
    CREDENTIAL_IDENTITY,
    CREDENTIAL_SHAPES,
)
from tests.work.conftest import machine_for
from work.models import Machine

pytestmark = pytest.mark.django_db
ENDS = st.sampled_from(sorted(ATTEMPT_ENDS))
ALIVE = {"state": "admitted", "finished_at": None}


class OneAttempt(EndingRow):
    """`state`, its secrets (only the newest opens anything, and only while it lives), and whether its credential was revoked."""

    model = Assignment
    ends, identity, story = ATTEMPT_ENDS, ATTEMPT_IDENTITY, ATTEMPT_ACCOUNT
    lawful = {"state": "completed", "finished_at": "2001-01-01T00:00:00Z", "creation_key": "another"}
    misshapen, unique = ATTEMPT_SHAPES, {"forge_assignments_creation_key_index": "creation_key"}
    owner: User
    issue: Issue
    box: Box
    computer: Machine
    other_issues: tuple[Issue, Issue]
    other_box: Box

    @initialize()
    def admit(self) -> None:
        now = database_now()
        made = Assignment.objects.create(
            conversation=self.box.conversation,
            conversation_box=self.box,
            repository=self.issue.repository,
            issue=self.issue,
            requesting_principal={"type": "user", "id": str(self.owner.pk)},
            creation_key="once",
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
        assert "Cannot delete rows" in str(gone), gone

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

    @rule()
    def is_not_put_beside_a_dead_credential(self) -> None:
        """A credential that was revoked before its attempt was there lets it be there only when it is over."""
        other, now = uuid.uuid4(), database_now()
        for alive, columns in ((False, {}), (True, ALIVE | self.elsewhere(0))):
            with unreferenced():
                AssignmentCredential.objects.create(
                    assignment_id=other, token_digest=b"7" * 32, last_four="7777", repository=self.issue.repository,
                    branch="agent/issue-1", expires_at=now, revoked_at=now,
                )  # fmt: skip
                why = self.add_like({"id": other, **columns})
            assert ("live assignment with a revoked credential" in str(why)) == alive, why

    @rule()
    def is_alone(self) -> None:
        """While it lives, nobody else has its issue, and nobody else its box."""
        elsewhere = self.elsewhere(0)
        for column, index in {
            "issue_id": "one_active_issue",
            "conversation_box_id": "one_active_box",
        }.items():
            with undone():
                why = self.add_like(
                    {name: value for name, value in elsewhere.items() if name != column} | ALIVE
                )
            assert (why is None) == self.is_over, why
            assert why is None or index in why

    @rule()
    def is_alone_on_a_computer(self) -> None:
        """As a box, a computer has one living attempt."""
        there = ALIVE | {
            "target_kind": "computer",
            "conversation_box_id": None,
            "machine_id": self.computer.pk,
        }
        with undone():
            assert self.add_like(self.elsewhere(0) | there) is None
            why = self.add_like(self.elsewhere(1) | there | {"creation_key": "a third"})
        assert "one_active_machine" in str(why), why

    def elsewhere(self, number: int) -> dict[str, Any]:
        """Another issue and another box."""
        return {"issue_id": self.other_issues[number].pk, "conversation_box_id": self.other_box.pk}

    @rule()
    def has_one_credential_of_its_shape(self) -> None:
        """Its credential is its only one, its secret nobody else's, and none is of another shape."""
        secret = {"token_digest": "\\x" + "07" * 32}
        alone = {"assignment_id": uuid.uuid4()}
        tries: list[tuple[str | None, dict[str, Any]]] = [
            (None, secret | alone),
            ("forge_assignment_credentials_assignment_id_key", secret),
            ("forge_assignment_credentials_token_digest_key", alone),
            *((name, secret | alone | dict(columns)) for name, columns in CREDENTIAL_SHAPES),
        ]
        for name, columns in tries:
            with unreferenced():
                why = self.add_credential_like(columns)
            assert (why is None) if name is None else (name in str(why)), (name, why)

    def add_credential_like(self, columns: dict[str, Any]) -> str | None:
        """Add a credential that differs from its own in these columns."""
        return attempted(
            "insert into forge_assignment_credentials select other.* from forge_assignment_credentials this,"
            " jsonb_populate_record(this, %s::jsonb) other where this.assignment_id = %s",
            json.dumps({"id": uuid.uuid4(), **columns}, default=str),
            self.row_id,
        )

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
        self.assert_told("assignment", states)

    def assert_guarded(self) -> None:
        super().assert_guarded()
        self.goes_only_its_ways()
        self.put_revoked()
        self.is_not_put_beside_a_dead_credential()
        self.is_alone()
        self.is_alone_on_a_computer()
        self.has_one_credential_of_its_shape()
        self.stays()


def test_whatever_is_written_an_attempt_moves_from_its_admission_to_one_end(
    owner: User, settings: Any, tmp_path: Any
) -> None:
    settings.FORGE = {"storage_root": str(tmp_path)}
    repository = create_repository(owner, "project")
    issue, *others = (create_issue(repository, title="Mend it", body="") for _ in range(3))
    box, other_box = (
        Box.objects.create(
            conversation=ensure_conversation(owner),
            box_id=box_id,
            label=box_id,
            state="ready",
            setup_status="done",
        )
        for box_id in ("bx_8bhkse3n", "bx_9chkse4n")
    )

    check(
        OneAttempt,
        owner=owner, issue=issue, box=box, computer=machine_for(owner, "mine"), other_issues=tuple(others), other_box=other_box,
    )  # fmt: skip
