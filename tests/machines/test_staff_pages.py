"""Machines for staff: revoked by each of them, given work to by their owner alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.machines.conftest import ROOT, Wire, paired
from work.channel import limits
from work.models import Job, Machine

pytestmark = pytest.mark.django_db
WANTED = {"agent_id": "echo", "cwd": ROOT, "prompt": "mend it", "seconds": "60"}


@pytest.fixture
def own(staff: User) -> Wire:
    wire = paired(staff)
    wire.connect()
    return wire


def address(wire: Wire) -> str:
    return f"/admin/work/machine/{wire.machine.pk}/delegate/"


def test_a_machine_is_revoked_from_the_list(browser: Client, wire: Wire) -> None:
    chosen = {
        "action": "revoke",
        "index": "0",
        "_selected_action": [str(wire.machine.pk)],
        "confirmed": "yes",
    }
    browser.post("/admin/work/machine/", chosen)

    assert Machine.objects.get().status == "revoked"


def test_work_is_given_to_ones_own_machine(browser: Client, own: Wire, monkeypatch: Any) -> None:
    monkeypatch.setattr("work.delegations.starting.asking.ask", lambda *_, **__: {"allowed": True})
    page = browser.get(f"/admin/work/machine/{own.machine.pk}/change/")
    assert address(own) in page.content.decode()

    answer = browser.post(address(own), WANTED, follow=True)

    job = Job.objects.get()
    assert answer.redirect_chain[-1][0] == f"/admin/work/job/{job.pk}/change/"
    assert (job.delegation["prompt"], job.delegation["timeout_ms"]) == ("mend it", 60_000)
    assert job.owner_visitor.user == own.machine.user


def test_nobody_gives_work_to_anothers_machine(browser: Client, wire: Wire) -> None:
    wire.connect()

    assert browser.get(address(wire)).status_code == 403
    assert browser.post(address(wire), WANTED).status_code == 403
    assert address(wire) not in browser.get(f"/admin/work/machine/{wire.machine.pk}/change/").content.decode()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cwd": "/etc"}, "cwd_not_allowed"),
        ({"prompt": ""}, "required"),
        ({"seconds": "0"}, "greater than or equal to 1"),
        ({"agent_id": "none"}, "Select a valid choice"),
        ({}, "machine_timeout"),
    ],
)
def test_what_is_refused_is_said_beside_the_form(
    browser: Client, own: Wire, monkeypatch: Any, change: dict[str, str], said: str
) -> None:
    monkeypatch.setattr(limits, "CHECK_SECONDS", 0)

    page = browser.post(address(own), WANTED | change)

    assert (page.status_code, said in page.content.decode()) == (200, True)
    assert not Job.objects.exists()


def test_a_machine_that_is_not_there_is_a_404(browser: Client) -> None:
    assert (
        browser.get("/admin/work/machine/00000000-0000-0000-0000-000000000000/delegate/").status_code == 404
    )
