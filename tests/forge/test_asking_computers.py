"""An attempt on a computer that speaks for itself: it is asked before there is a job."""

from __future__ import annotations

import contextlib

import pytest

from base.errors import CodedError
from forge import assignments
from forge.models import Assignment
from tests.machines.conftest import ROOT, paired
from tests.machines.test_starting import Answering
from work.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("answer", "reason", "jobs"),
    [({"allowed": True}, None, 1), ({"allowed": False, "code": "cwd_not_allowed"}, "cwd_not_allowed", 0)],
    ids=["allowed", "refused"],
)
def test_the_computer_has_the_last_word_before_there_is_a_job(owner, repository, issue, answer, reason, jobs):
    wire = paired(owner)
    wire.connect()
    machine = Answering(wire, lambda frame: answer if frame["kind"] == "check" else None)
    with contextlib.suppress(CodedError):
        assignments.create(
            requesting_user=owner, repository_id=repository.pk, issue_number=issue.number,
            machine_id=wire.machine.pk, agent_id="echo", cwd=f"{ROOT}/site",
        )  # fmt: skip
    machine.stop()

    assert Assignment.objects.get().failure_reason == reason
    assert Job.objects.count() == jobs
    assert machine.asked[0]["body"]["cwd"] == f"{ROOT}/site"
