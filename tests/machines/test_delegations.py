"""A delegation from its offer to its report, with a machine that speaks the channel by hand."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from accounts.models import User
from base import hooks
from base.pump import Holder
from tests.machines.conftest import ROOT, Wire, delegate, drive, due_now, paired
from tests.machines.delegating import taken
from work.incidents import list_recent
from work.machines import revoke_machine
from work.models import Delegation, Incident, Job, Machine, MachineFrame
from work.services import cancel_job, claim_for_run, get_job, recover_interrupted_jobs

pytestmark = pytest.mark.django_db


def test_boot_recovery_records_a_degraded_incident_for_each_interrupted_job(wire: Wire, owner: User) -> None:
    job = delegate(wire)

    recover_interrupted_jobs()
    final = drive(job)

    assert final.is_terminal
    assert (final.status, final.error_code) == ("failed", "machine_offline")
    incident = next(found for found in list_recent(owner) if found.code == "runtime_restarted")
    assert (incident.severity, incident.surface) == ("degraded", "delegation")


def test_it_is_offered_with_what_was_agreed_and_goes_on_to_its_report(connected: Wire) -> None:
    job = delegate(connected)
    drive(job)

    [frame] = connected.hear()
    assert frame["kind"] == "offer"
    assert frame["body"] == {
        "job": str(job.pk),
        "attempt": 1,
        "agent_id": "echo",
        "prompt": "mend the input bar",
        "cwd": f"{ROOT}/site",
        "timeout_ms": 60_000,
        "authority": {"tier": "curated", "roots": [ROOT]},
    }

    connected.tell("accepted", job=str(job.pk), attempt=1)
    connected.tell("session", job=str(job.pk), attempt=1, session_id="sess-1", model="opus", mode="code")
    connected.tell("progress", job=str(job.pk), attempt=1, text="Looking.", tool_calls=3)
    running = get_job(job.pk)
    assert (running.status, running.report) == ("running", "Looking.")
    assert running.delegation["resume_session_id"] == "sess-1"

    connected.tell("result", job=str(job.pk), attempt=1, status="completed", prose="Mended.", tool_calls=4)
    done = get_job(job.pk)
    assert (done.status, done.error_code, done.tool_call_count) == ("completed", None, 4)
    assert done.report.startswith(f"Delegation to echo on {connected.machine.name} — completed.")
    assert "Mended." in done.report
    assert not Incident.objects.exists()
    drive(job)
    assert connected.hear() == []


@pytest.mark.parametrize(
    ("status", "code", "incident"),
    [
        ("refused", "refused", "delegation_refused"),
        ("cancelled", "cancelled", "delegation_cancelled"),
        ("timeout", "timeout", "delegation_timeout"),
        ("unavailable", "unavailable", "delegation_failed"),
        ("failed", "session_not_resumable", "delegation_failed"),
    ],
)
def test_anything_but_completed_is_a_failure_with_its_incident(
    connected: Wire, owner: User, status: str, code: str, incident: str
) -> None:
    job = taken(connected)

    connected.tell("result", job=str(job.pk), attempt=1, status=status, code=code, detail="why")

    done = get_job(job.pk)
    assert (done.status, done.error_code) == ("failed", code)
    assert "Detail: why" in done.report
    assert [found.code for found in list_recent(owner)] == [incident]


def test_authority_is_read_from_the_snapshot_and_not_from_the_machine_as_it_is_now(connected: Wire) -> None:
    job = delegate(connected)
    Machine.objects.filter(pk=connected.machine.pk).update(tier="probe")
    drive(job)

    assert connected.hear()[0]["body"]["authority"]["tier"] == "curated"


def test_the_credential_is_minted_at_delivery_under_its_one_key_and_is_stored_nowhere(
    connected: Wire, monkeypatch: Any
) -> None:
    minted: list[Any] = []

    def mint(job: Job) -> dict[str, str]:
        minted.append(job.pk)
        return {"secret": f"secret-{len(minted)}"}

    monkeypatch.setattr(hooks.job_credential, "_callables", [mint])
    job = delegate(connected)
    drive(job)
    assert minted == []

    [frame] = connected.poll()
    assert frame["body"]["assignment_credential"] == {"secret": "secret-1"}
    [again] = connected.poll()
    assert again["body"]["assignment_credential"] == {"secret": "secret-2"}
    assert "secret" not in str(list(MachineFrame.objects.values_list("body", flat=True)))


def test_cancelled_before_it_was_offered_the_machine_never_hears_of_it(connected: Wire) -> None:
    job = delegate(connected)

    assert cancel_job(job.pk).status == "cancelled"

    drive()
    assert connected.hear() == []


def test_cancelled_while_the_machine_is_at_work_it_ends_at_once_and_the_machine_is_told(
    connected: Wire,
) -> None:
    job = taken(connected)
    connected.tell("progress", job=str(job.pk), attempt=1, text="Half of it.")

    done = cancel_job(job.pk)

    assert (done.status, done.error_code) == ("cancelled", "cancelled")
    assert "was cancelled" in done.report
    assert "Half of it." in done.report
    drive()
    assert [(frame["kind"], frame["body"]["job"]) for frame in connected.hear()] == [("cancel", str(job.pk))]
    connected.tell("result", job=str(job.pk), attempt=1, status="cancelled")
    assert get_job(job.pk).report == done.report


def test_an_offer_that_nobody_wants_any_more_is_not_made(connected: Wire) -> None:
    job = delegate(connected)
    drive(job)
    cancel_job(job.pk)

    assert [frame["kind"] for frame in connected.hear()] == ["nothing"]


def test_a_worker_that_died_in_between_leaves_one_offer(connected: Wire, monkeypatch: Any) -> None:
    job = delegate(connected)
    drive(job)
    claim_for_run(job.pk, Holder(owner=2_000_000_001))  # and died

    recover_interrupted_jobs()
    drive(job)

    assert Delegation.objects.get().attempt == 1
    assert [frame["kind"] for frame in connected.hear()] == ["offer"]
    connected.tell("result", job=str(job.pk), attempt=1, status="completed")
    assert get_job(job.pk).status == "completed"


def test_news_are_taken_while_a_worker_holds_the_job(connected: Wire) -> None:
    job = taken(connected)
    claim_for_run(job.pk)

    connected.tell("session", job=str(job.pk), attempt=1, session_id="sess-2")
    connected.tell("progress", job=str(job.pk), attempt=1, text="words")

    assert (get_job(job.pk).delegation["resume_session_id"], get_job(job.pk).report) == ("sess-2", "words")


def test_what_the_agent_asked_for_is_kept_and_counted(connected: Wire) -> None:
    job = taken(connected)

    for n in range(25):
        connected.tell(
            "permission", job=str(job.pk), attempt=1, title=f"Run {n}", tool="execute",
            decision="refused" if n % 2 else "allowed", reason="tier",
        )  # fmt: skip

    delegation = Delegation.objects.get()
    assert (len(delegation.permissions), delegation.refused_permissions) == (20, 12)
    assert delegation.permissions[-1]["title"] == "Run 24"
    connected.tell("result", job=str(job.pk), attempt=1, status="completed")
    assert "refused what the agent asked for 12 times" in get_job(job.pk).report


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("session", {"session_id": ""}),
        ("session", {"session_id": "x" * 513}),
        ("session", {"session_id": "a\0b"}),
        ("session", {"session_id": None}),
        ("progress", {"text": 5}),
        ("progress", {"tool_calls": -1}),
        ("progress", {"tool_calls": 1.5}),
        ("permission", {"decision": "maybe"}),
        ("result", {"status": "perhaps"}),
        ("result", {"status": None}),
    ],
)
def test_bad_news_are_refused_and_change_nothing(connected: Wire, kind: str, body: dict[str, Any]) -> None:
    job = taken(connected)

    answer = connected.tell(kind, job=str(job.pk), attempt=1, **body)

    assert answer.json()["refused"][0]["code"] == "invalid_frame"
    assert (get_job(job.pk).status, get_job(job.pk).delegation["resume_session_id"]) == ("running", "sess-1")


def test_words_that_cannot_be_stored_cost_only_themselves(connected: Wire) -> None:
    job = taken(connected)

    connected.tell("progress", job=str(job.pk), attempt=1, text="a\0b\ud800c")
    connected.tell(
        "result", job=str(job.pk), attempt=1, status="failed", code="x" * 500, detail="\0", prose="\ud800"
    )

    assert get_job(job.pk).status == "failed"


def test_a_delegations_row_keeps_what_happened_once(connected: Wire, owner: User) -> None:
    job = taken(connected)
    connected.tell("result", job=str(job.pk), attempt=1, status="completed")

    for change in ({"closed_at": None}, {"attempt": 0}, {"machine": paired(owner).machine}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Delegation.objects.filter(pk=job.pk).update(**change)


def test_a_revoked_machine_is_told_nothing(connected: Wire) -> None:
    job = taken(connected)
    revoke_machine(connected.machine)

    drive()

    assert get_job(job.pk).error_code == "machine_revoked"
    assert not MachineFrame.objects.exists()
    assert Delegation.objects.get().closed_at is not None


def test_one_that_cannot_be_driven_costs_only_itself(connected: Wire, monkeypatch: Any) -> None:
    from work.delegations import driver

    bad, good = delegate(connected), delegate(connected)
    original = driver.decide

    def decide(facts: Any, policy: Any) -> Any:
        if not Delegation.objects.exists():
            monkeypatch.setattr(driver, "decide", original)
            raise RuntimeError
        return original(facts, policy)

    monkeypatch.setattr(driver, "decide", decide)
    drive()

    jobs = [get_job(bad.pk), get_job(good.pk)]
    assert sorted(job.failures for job in jobs) == [0, 1]
    assert [frame["kind"] for frame in connected.hear()] == ["offer"]


def test_a_delegation_that_runs_holds_no_lease_and_is_looked_at_seldom(connected: Wire) -> None:
    from work.delegations.driver import DelegationDriver

    job = taken(connected)
    due_now(job)
    drive(job)

    waiting = get_job(job.pk)
    assert (waiting.lease_expires_at, waiting.attempts) == (None, 0)
    assert 20 < DelegationDriver().seconds_until_due() <= 45


def test_a_driver_claims_no_other_kind_of_job(connected: Wire) -> None:
    from conversations.services import ensure_conversation
    from work.services import create_job

    conversation = ensure_conversation(connected.machine.user)
    deep = create_job(conversation_id=conversation.id, owner_visitor_id=conversation.visitor_id, goal="think")

    assert drive(deep).status == "queued"


def test_what_an_agent_asks_for_is_kept_in_every_script(connected: Wire) -> None:
    job = delegate(connected)
    drive(job)
    connected.hear()

    for _ in range(25):
        answer = connected.tell(
            "permission", job=str(job.pk), attempt=1, title="🙂" * 200, decision="refused", reason="🙂" * 200
        )
        assert answer.json()["refused"] == []

    delegation = Delegation.objects.get(pk=job.pk)
    assert delegation.refused_permissions == 25
    assert 1 <= len(delegation.permissions) <= 20
