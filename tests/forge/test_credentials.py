"""The secret of an attempt: its form, when it is good, and that nobody can tell why it is not."""

from __future__ import annotations

import base64
import hashlib

import pytest

from forge import assignments, credentials
from forge.errors import InvalidCredential
from forge.models import Assignment, AssignmentCredential
from tests.forge.conftest import make_overdue, rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(owner, repository, issue, box, no_provider) -> tuple[Assignment, str]:
    return assignments.create(
        requesting_user=owner, repository_id=repository.pk, issue_number=issue.number, box_id=box.pk
    )


def test_it_has_the_form_that_is_promised(made):
    assignment, plaintext = made
    kept = assignments.credential(assignment)
    prefix, secret = plaintext.split(".")

    assert prefix == f"oa_assignment_{assignment.pk}"
    assert len(secret) == 43
    assert len(base64.urlsafe_b64decode(secret + "=")) == 32
    assert bytes(kept.token_digest) == hashlib.sha256(plaintext.encode()).digest()
    assert kept.last_four == secret[-4:]
    assert kept.expires_at == assignment.deadline_at


def test_it_says_what_it_opens_by_the_row(made):
    assignment, plaintext = made

    principal = assignments.authenticate(plaintext)

    assert (principal.kind, principal.assignment_id) == ("assignment", assignment.pk)
    assert (principal.repository_id, principal.branch) == (assignment.repository_id, "agent/issue-1")
    assert principal.credential_id == assignments.credential(assignment).pk


BENT = {
    "empty": lambda text: "",
    "another secret": lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
    "no prefix": lambda text: text.removeprefix("oa_assignment_"),
    "no secret": lambda text: text.split(".")[0] + ".",
    "a short secret": lambda text: text.split(".")[0] + ".abc",
    "a long secret": lambda text: text + "A" * 58,
    "longer than 239 bytes": lambda text: text + "A" * 200,
    "no id": lambda text: "oa_assignment_nobody." + text.split(".")[1],
    "the id in capitals": lambda text: text.replace(text[14:50], text[14:50].upper()),
    "an id without dashes": lambda text: text.replace("-", ""),
    "another attempt": lambda text: text.replace(text[14:50], "00000000-0000-4000-8000-000000000000"),
    "with a space": lambda text: text + " ",
    "with a NUL": lambda text: text + "\0",
    "not text": lambda text: text.encode(),
    "lone surrogates": lambda text: text[:-1] + "\ud800",
}


@pytest.mark.parametrize("how", BENT)
def test_every_failure_is_one_error(made, how):
    _, plaintext = made

    with pytest.raises(InvalidCredential) as refused:
        assignments.authenticate(BENT[how](plaintext))

    assert refused.value.code == "invalid_assignment_credential"
    assert refused.value.detail == InvalidCredential().detail


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_it_dies_with_its_attempt(made, state):
    assignment, plaintext = made

    assignments.finish(assignment, state)

    with pytest.raises(InvalidCredential):
        assignments.authenticate(plaintext)
    assert (
        assignments.credential(assignment).revoked_at == Assignment.objects.get(pk=assignment.pk).finished_at
    )


def test_it_ends_at_the_deadline_and_not_before(made):
    assignment, plaintext = made
    assert assignments.credential(assignment).expires_at == assignment.deadline_at
    assert assignments.authenticate(plaintext).assignment_id == assignment.pk

    make_overdue(assignment)

    with pytest.raises(InvalidCredential):
        assignments.authenticate(plaintext)
    assert credentials.mint(assignment.pk) is None


def test_a_new_delivery_makes_a_new_secret_and_the_older_one_is_dead(made):
    assignment, first = made

    second = credentials.mint(assignment.pk)

    assert second != first
    assert assignments.authenticate(second).assignment_id == assignment.pk
    with pytest.raises(InvalidCredential):
        assignments.authenticate(first)
    assert AssignmentCredential.objects.get(assignment=assignment).deliveries == 1


def test_an_attempt_that_is_over_gets_no_secret(made):
    assignment, _ = made
    assignments.finish(assignment, "completed")

    assert credentials.mint(assignment.pk) is None


def test_it_compares_also_where_there_is_nothing_to_compare_with(made, monkeypatch):
    compared = []
    real = credentials.hmac.compare_digest
    monkeypatch.setattr(credentials.hmac, "compare_digest", lambda a, b: compared.append(1) or real(a, b))

    with pytest.raises(InvalidCredential):
        assignments.authenticate("oa_assignment_00000000-0000-4000-8000-000000000000." + "A" * 43)

    assert compared


def test_the_plaintext_is_in_no_row(made, caplog):
    _, plaintext = made
    secret = plaintext.split(".")[1]
    tables = rows("select table_name from information_schema.tables where table_schema = 'public'")

    found = [
        table
        for (table,) in tables
        if rows(f'select 1 from "{table}" row where row::text like %s', f"%{secret}%")
    ]

    assert found == []
    assert secret not in caplog.text
    assert secret not in repr(credentials.new_secret(made[0].pk)) + str(made[0]) + repr(made[0])


def test_it_is_no_credential_of_the_api(made, api_of, owner):
    from rest_framework.test import APIClient

    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made[1]}")

    assert client.get("/api/v1/repositories").status_code == 401


def test_its_word_is_known_again(made):
    assignment, plaintext = made

    assert credentials.is_credential_of(assignment.pk, plaintext.split(".")[1])
    assert not credentials.is_credential_of(assignment.pk, "A" * 43)
