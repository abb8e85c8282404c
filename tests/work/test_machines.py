"""Pairing a computer, knowing it by its token, revoking it."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from base.sealing import SealBroken, unseal
from tests.work.conftest import new_user
from work import tasks
from work.errors import (
    MachineExpired,
    MachineNotFound,
    MachineRevoked,
    PairingConsumed,
    PairingExpired,
    PairingInvalid,
    PairingNotFound,
    PairingPending,
    TooManyMachines,
)
from work.machines import (
    StartedPairing,
    approve_pairing,
    authenticate_token,
    claim_pairing,
    expire_pairings,
    find_pairing,
    revoke_machine,
    start_pairing,
)
from work.machines.secrets import CODE_ALPHABET
from work.models import Machine, MachinePairing

pytestmark = pytest.mark.django_db


def started(**changes: Any) -> StartedPairing:
    described = {
        "name": "laptop",
        "tier": "curated",
        "platform": "linux-x64",
        "agent_version": "0.1.0",
        "roots": ["/w"],
    }
    return start_pairing(**described | changes)


def age(pairing_id: uuid.UUID) -> None:
    """Time passes: triggers keep a pairing's times, so they are switched off for it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")
        cursor.execute(
            "update machine_pairings set expires_at = now() - interval '1 second',"
            " created_at = now() - interval '1 hour' where id = %s",
            [pairing_id],
        )
        cursor.execute("set local session_replication_role = default")


def test_a_computer_is_paired_by_its_owner_and_fetches_its_token_once(owner: User) -> None:
    pairing = started()
    with pytest.raises(PairingPending):
        claim_pairing(pairing.id, pairing.poll_secret)
    assert find_pairing(pairing.code).name == "laptop"

    machine = approve_pairing(owner, pairing.code)
    claim = claim_pairing(pairing.id, pairing.poll_secret)

    assert (claim.machine, machine.user, machine.status) == (machine, owner, "active")
    assert (machine.name, machine.tier, machine.roots) == ("laptop", "curated", ["/w"])
    assert machine.token_expires_at - machine.created_at == timedelta(days=30)
    assert authenticate_token(claim.token) == machine
    with pytest.raises(PairingConsumed):
        claim_pairing(pairing.id, pairing.poll_secret)


def test_code_and_secrets_look_as_promised() -> None:
    pairing = started()

    left, right = pairing.code.split("-")
    assert len(left) == len(right) == 4
    assert set(left + right) <= set(CODE_ALPHABET)
    assert (len(CODE_ALPHABET), set("ILOU01") & set(CODE_ALPHABET)) == (30, set())
    assert len(pairing.poll_secret) == 43


def test_nothing_secret_is_stored_in_clear(owner: User) -> None:
    pairing = started()
    approve_pairing(owner, pairing.code)
    row = MachinePairing.objects.get()
    sealed = bytes(row.sealed_token)
    token = claim_pairing(pairing.id, pairing.poll_secret).token

    stored = repr(MachinePairing.objects.values().get()) + repr(Machine.objects.values().get())
    for secret in (token, pairing.poll_secret, pairing.code, pairing.code.replace("-", "")):
        assert secret not in stored
        assert secret.encode() not in sealed
    with pytest.raises(SealBroken):
        unseal("another purpose", sealed)
    row.refresh_from_db()
    assert (row.status, row.sealed_token) == ("claimed", None)


@pytest.mark.parametrize(
    "typed", [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code[:2]} {code[2:]}. "]
)
def test_case_and_separators_of_a_code_do_not_count(owner: User, typed: Any) -> None:
    assert approve_pairing(owner, typed(started().code)).user == owner


def test_a_wrong_code_or_secret_finds_nothing(owner: User) -> None:
    pairing, other = started(), started()

    for code in ("", "AAAA-AAAA", "é" * 100, "\0"):
        with pytest.raises(PairingNotFound):
            approve_pairing(owner, code)
    for pairing_id, secret in ((pairing.id, other.poll_secret), (pairing.id, ""), (uuid.uuid4(), pairing.poll_secret), ("x", "x"), (pairing.id, None)):  # fmt: skip
        with pytest.raises(PairingNotFound):
            claim_pairing(pairing_id, secret)


def test_a_code_is_approved_once(owner: User, stranger: User) -> None:
    pairing = started()
    approve_pairing(owner, pairing.code)

    for user in (owner, stranger):
        with pytest.raises(PairingConsumed):
            approve_pairing(user, pairing.code)
    assert Machine.objects.count() == 1


def test_a_pairing_that_took_too_long_is_expired(owner: User) -> None:
    pairing = started()
    age(pairing.id)

    for call in (lambda: approve_pairing(owner, pairing.code), lambda: find_pairing(pairing.code)):
        with pytest.raises(PairingExpired):
            call()
    with pytest.raises(PairingExpired):
        claim_pairing(pairing.id, pairing.poll_secret)
    assert MachinePairing.objects.get().status == "expired"


def test_a_machine_whose_token_nobody_fetched_in_time_is_revoked(owner: User) -> None:
    pairing = started()
    machine = approve_pairing(owner, pairing.code)
    age(pairing.id)

    for _ in range(2):
        with pytest.raises(PairingExpired):
            claim_pairing(pairing.id, pairing.poll_secret)

    machine.refresh_from_db()
    assert (machine.status, MachinePairing.objects.get().sealed_token) == ("revoked", None)


def test_the_sweep_ends_what_was_not_claimed_and_nothing_else(owner: User) -> None:
    waiting, approved, claimed, fresh = (started() for _ in range(4))
    machines = [approve_pairing(owner, pairing.code) for pairing in (approved, claimed)]
    claim_pairing(claimed.id, claimed.poll_secret)
    for pairing in (waiting, approved, claimed):
        age(pairing.id)

    assert (expire_pairings(), expire_pairings()) == (2, 0)
    tasks.expire_pairings()

    states = dict(MachinePairing.objects.values_list("pk", "status"))
    assert [states[pairing.id] for pairing in (waiting, approved, claimed, fresh)] == [
        "expired", "expired", "claimed", "pending"]  # fmt: skip
    assert [Machine.objects.get(pk=machine.pk).status for machine in machines] == ["revoked", "active"]


def test_an_expiry_whose_process_died_halfway_is_finished_by_the_next(owner: User) -> None:
    pairing = started()
    machine = approve_pairing(owner, pairing.code)
    MachinePairing.objects.update(status="expired", sealed_token=None)

    expire_pairings()

    machine.refresh_from_db()
    assert machine.status == "revoked"


def test_a_user_has_at_most_8_machines(owner: User) -> None:
    machines = [approve_pairing(owner, started().code) for _ in range(8)]
    ninth = started()
    with pytest.raises(TooManyMachines):
        approve_pairing(owner, ninth.code)

    revoke_machine(machines[0])

    assert approve_pairing(owner, ninth.code).status == "active"


@pytest.mark.parametrize("token", ["", "smct_", "smct_" + "x" * 43, "oa_pat_" + "x" * 43, "smct_" + "x" * 500, "smct_é\0", None])  # fmt: skip
def test_what_is_no_token_of_a_machine_finds_none(db: None, token: Any) -> None:
    with pytest.raises(MachineNotFound):
        authenticate_token(token)


def test_a_revoked_or_expired_token_says_so(owner: User) -> None:
    pairing = started()
    machine = approve_pairing(owner, pairing.code)
    token = claim_pairing(pairing.id, pairing.poll_secret).token
    past = timezone.now() - timedelta(days=40)
    Machine.objects.filter(pk=machine.pk).update(
        token_expires_at=machine.created_at + timedelta(microseconds=1)
    )
    with pytest.raises(MachineExpired):
        authenticate_token(token)

    assert (revoke_machine(machine), revoke_machine(machine)) == (True, False)

    with pytest.raises(MachineRevoked):
        authenticate_token(token)
    assert past < Machine.objects.get().revoked_at


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "\0"}, "name"),
        ({"tier": "root"}, "tier"),
        ({"tier": None}, "tier"),
        ({"platform": "x" * 41}, "platform"),
        ({"agent_version": 5}, "agent_version"),
        ({"roots": ["/"] * 17}, "roots"),
        ({"roots": ["/" + "é" * 256]}, "roots"),
        ({"roots": [""]}, "roots"),
        ({"roots": [5]}, "roots"),
        ({"roots": "/"}, "roots"),
    ],
)
def test_a_description_out_of_bounds_is_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(PairingInvalid) as refused:
        started(**wrong)
    assert list(refused.value.fields) == [field]


def test_the_largest_description_fits() -> None:
    started(name="é" * 80, roots=["\x01" * 512] * 16)


def test_staff_see_no_digests_and_no_probe(client: Any, staff: User) -> None:
    pairing = started()
    machine = approve_pairing(new_user("watched"), pairing.code)
    Machine.objects.filter(pk=machine.pk).update(last_probe={"raw": "probe-text"})
    client.force_login(staff)

    for path in (
        f"machine/{machine.pk}",
        f"machinepairing/{pairing.id}",
        "machine",
        "job",
        "jobstep",
        "incident",
    ):
        page = client.get(f"/admin/work/{path}/", follow=True)
        assert page.status_code == 200
        for hidden in ("probe-text", "token_digest", "sealed_token", "code_digest", "poll_secret"):
            assert hidden not in page.content.decode()
