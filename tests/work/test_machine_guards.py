"""What the database itself refuses of a machine and of a pairing, whoever writes."""

from __future__ import annotations

import json
import uuid

import pytest
from django.db import DatabaseError, IntegrityError
from django.utils import timezone

from tests.work.conftest import machine_for, new_user
from tests.work.guarded import put, sql

pytestmark = pytest.mark.django_db


def test_a_machine_stays_its_owners_and_a_revoked_one_revoked() -> None:
    machine = machine_for(new_user("owner-of-machine"), "guarded")

    for column, value in (
        ("id", uuid.uuid4()),
        ("user_id", new_user("thief").pk),
        ("token_digest", b"x" * 32),
    ):
        with pytest.raises(DatabaseError, match="machine identity is immutable"):
            put(machine, **{column: value})
    put(machine, status="revoked", revoked_at=timezone.now())
    with pytest.raises(DatabaseError, match="invalid revoked machine transition"):
        put(machine, status="active", revoked_at=None)
    with pytest.raises(DatabaseError, match="Cannot delete"):
        sql("delete from machines where id = %s", machine.pk)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "  "),
        ("tier", "root"),
        ("roots", "{}"),
        ("roots", "[5]"),
        ("roots", json.dumps(["/"] * 17)),
        ("token_expires_at", "2020-01-01T00:00:00Z"),
        ("last_probe", json.dumps({"a": "x" * 32_800})),
        ("status", "revoked"),
        ("revoked_at", "2030-01-01T00:00:00Z"),
    ],
)
def test_values_of_a_machine_out_of_bounds_are_refused(column: str, value: str) -> None:
    machine = machine_for(new_user("owner-of-machine"), "bounded")

    with pytest.raises(IntegrityError, match="machines_"):
        put(machine, **{column: value})


def test_a_claimed_pairing_is_settled() -> None:
    machine = machine_for(new_user("owner-of-machine"), "settled")
    put(machine.pairing, status="claimed", sealed_token=None)

    with pytest.raises(DatabaseError, match="invalid claimed machine pairing transition"):
        put(machine.pairing, status="approved", sealed_token=b"again")
    with pytest.raises(DatabaseError, match="terminal machine pairing is immutable"):
        put(machine.pairing, sealed_token=b"again")
    with pytest.raises(DatabaseError, match="machine pairing identity is immutable"):
        put(machine.pairing, poll_secret_digest=b"x" * 32)
    with pytest.raises(DatabaseError, match="machine pairing identity is immutable"):
        put(machine.pairing, id=uuid.uuid4())
