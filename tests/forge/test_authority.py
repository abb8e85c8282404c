"""Who has lost a right has lost it by every way: their computers and the attempts they asked for have no more than they do."""

from __future__ import annotations

import pytest

from accounts.models import User
from forge import assignments
from forge.models import Assignment, MachineGrant, Repository
from forge.services import grant_machine, remove_member, set_member
from forge.smart_http.access import Answer, decide
from forge.smart_http.callers import Presented, WrongCredential, caller
from forge.states import Operation
from tests.forge.machines import paired_machine

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_provider")]


def verdict(secret: str, repository: Repository, operation: Operation = Operation.WRITE) -> Answer:
    return decide(caller(Presented(secret), repository), repository, operation)


@pytest.fixture
def attempt(stranger, repository, issue, make_box) -> tuple[Assignment, str]:
    """An attempt that a contributor asked for."""
    set_member(repository, stranger, "contributor")
    made, secret = assignments.create(
        requesting_user=stranger,
        repository_id=repository.pk,
        issue_number=issue.number,
        box_id=make_box(stranger).pk,
    )
    assert secret
    return made, secret


@pytest.mark.parametrize("role", [None, "viewer"])
def test_who_may_not_write_any_more_has_no_attempts_any_more(attempt, repository, stranger, role):
    assignment, secret = attempt
    assert verdict(secret, repository) is Answer.YES

    remove_member(repository, stranger) if role is None else set_member(repository, stranger, role)

    ended = Assignment.objects.get(pk=assignment.pk)
    assert (ended.state, ended.failure_reason) == ("failed", "repository_not_writable")
    with pytest.raises(WrongCredential):
        verdict(secret, repository)


def test_another_role_that_may_write_ends_nothing(attempt, repository, stranger):
    set_member(repository, stranger, "maintainer")

    assert Assignment.objects.get(pk=attempt[0].pk).state == "running"
    assert verdict(attempt[1], repository) is Answer.YES


def test_the_attempts_of_others_go_on(attempt, repository, owner):
    other = User.objects.create(username="other", slug="other")
    set_member(repository, other, "contributor")

    remove_member(repository, other)

    assert verdict(attempt[1], repository) is Answer.YES


def test_a_credential_is_good_only_while_its_asker_may_write(attempt, repository, stranger):
    User.objects.filter(pk=stranger.pk).update(is_active=False)

    with pytest.raises(WrongCredential):
        verdict(attempt[1], repository)


@pytest.fixture
def machine_token(stranger, repository) -> str:
    set_member(repository, stranger, "maintainer")
    machine, token = paired_machine(stranger)
    grant_machine(repository, machine, ["read", "write"])
    return token


def test_a_computer_has_no_more_than_its_owner(machine_token, repository, stranger):
    assert verdict(machine_token, repository) is Answer.YES

    set_member(repository, stranger, "viewer")
    assert verdict(machine_token, repository) is Answer.NO
    assert verdict(machine_token, repository, Operation.READ) is Answer.YES

    remove_member(repository, stranger)
    assert verdict(machine_token, repository, Operation.READ) is Answer.THERE_IS_NONE
    assert not MachineGrant.objects.exists()


def test_a_computer_whose_owner_may_not_sign_in_is_refused(machine_token, repository, stranger):
    User.objects.filter(pk=stranger.pk).update(is_active=False)

    with pytest.raises(WrongCredential):
        verdict(machine_token, repository)
