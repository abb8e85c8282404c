"""The same key and body get the first answer again; the work is done once."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest
from django.db import connection

from accounts.idempotency import (
    Answer,
    IdempotencyConflict,
    IdempotencyInProgress,
    InvalidIdempotencyKey,
    checked_key,
    forget_old,
    once,
)
from accounts.models import IdempotencyKey
from accounts.services import upsert_github_user
from base.errors import CodedError
from tests.threads import all_at_once


class Work:
    """Counts how often it was done."""

    def __init__(self) -> None:
        self.tickets: list[UUID] = []

    def __call__(self, ticket: UUID) -> Answer:
        self.tickets.append(ticket)
        return Answer(201, {"made": len(self.tickets)})


@pytest.mark.django_db
def test_it_repeats_the_first_answer_without_the_work(owner):
    work = Work()

    answers = [once(owner, "POST /boxes", "k", {"a": 1}, work) for _ in range(3)]

    assert answers == [Answer(201, {"made": 1})] * 3
    assert len(work.tickets) == 1


@pytest.mark.django_db
def test_it_refuses_the_key_with_another_body(owner):
    once(owner, "POST /boxes", "k", {"a": 1}, Work())

    with pytest.raises(IdempotencyConflict):
        once(owner, "POST /boxes", "k", {"a": 2}, Work())


@pytest.mark.django_db
def test_a_key_belongs_to_one_user_and_one_route(owner, stranger):
    work = Work()

    once(owner, "POST /boxes", "k", {}, work)
    once(owner, "POST /runs", "k", {}, work)
    once(stranger, "POST /boxes", "k", {}, work)

    assert len(set(work.tickets)) == 3


@pytest.mark.django_db
def test_a_refusal_frees_the_key(owner):
    def refuse(ticket: UUID) -> Answer:
        raise CodedError("box_quota_reached")

    with pytest.raises(CodedError, match="box_quota_reached"):
        once(owner, "POST /boxes", "k", {}, refuse)
    work = Work()

    assert once(owner, "POST /boxes", "k", {}, work).status == 201


@pytest.mark.django_db
def test_after_a_crash_the_second_attempt_has_the_same_ticket(owner):
    seen = []

    def crash(ticket: UUID) -> Answer:
        seen.append(ticket)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        once(owner, "POST /boxes", "k", {}, crash)
    with pytest.raises(IdempotencyInProgress):
        once(owner, "POST /boxes", "k", {}, Work())
    with connection.cursor() as cursor:
        cursor.execute("update api_idempotency_keys set locked_until = clock_timestamp() - interval '1 s'")
    work = Work()
    once(owner, "POST /boxes", "k", {}, work)

    assert work.tickets == seen


@pytest.mark.django_db(transaction=True)
def test_of_twenty_at_once_one_works_and_nobody_fails_otherwise():
    owner = upsert_github_user(github_id=1, github_login="owner")
    work, barrier = Work(), threading.Barrier(20)

    def call(_: int) -> int:
        barrier.wait()
        try:
            return once(owner, "POST /boxes", "k", {}, work).status
        except IdempotencyInProgress:
            return 409

    outcomes = all_at_once(call, range(20), threads=20)

    assert len(work.tickets) == 1
    assert len(outcomes) == 20
    assert set(outcomes) <= {201, 409}


@pytest.mark.django_db
def test_keys_are_forgotten_after_a_day(owner):
    once(owner, "POST /boxes", "old", {}, Work())
    with connection.cursor() as cursor:
        cursor.execute("update api_idempotency_keys set created_at = clock_timestamp() - interval '25 hours'")
    once(owner, "POST /boxes", "new", {}, Work())

    assert forget_old() == 1
    assert IdempotencyKey.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 257, "é" * 129, "a\0b"])
def test_it_refuses_a_key_of_the_wrong_size(key):
    with pytest.raises(InvalidIdempotencyKey):
        checked_key(key)


def test_no_key_is_no_key():
    assert checked_key(None) is None
