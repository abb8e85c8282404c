"""Handing the credential over, to a box with its run or to a computer with its delegation: a new secret each time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings

from forge import credentials
from forge.assignments import objective
from forge.assignments.ends import assignment_of_job, assignment_of_run
from forge.models import Assignment
from forge.states import LIVE, Delivery
from runs.models import Run
from runs.scripts import GitCredential
from work.models import Job

log = structlog.get_logger(__name__)

NOT_ENABLED = "computer_scoped_forge_credentials_not_enabled"
USERNAME = "x"


def run_credential(run: Run) -> GitCredential | None:
    """What a run of an attempt is dispatched with; None for another run, and for one whose attempt is over."""
    assignment = assignment_of_run(run)
    secret = None if assignment is None else credentials.mint(assignment.pk)
    return None if secret is None else GitCredential(origin=_origin(), secret=secret, username=USERNAME)


def credential_seen(run: Run, word: str) -> bool:
    """Whether this word of the run's output is the secret of its own credential."""
    assignment = assignment_of_run(run)
    return assignment is not None and credentials.is_credential_of(assignment.pk, word)


def job_credential(job: Job) -> dict[str, Any] | None:
    """What a computer is handed over with this delivery: `origin`, `username`, `secret`, `clone_url` and `branch`.

    None where the job is of no living attempt, or where the computer's owner has not allowed it; the attempt says so.
    """
    assignment = assignment_of_job(job)
    if assignment is None or assignment.machine is None:
        return None
    if not assignment.machine.scoped_forge_credentials_enabled:
        _note(assignment, Delivery.REFUSED, NOT_ENABLED)
        return None
    secret = credentials.mint(assignment.pk)
    if secret is None:
        return None
    _note(assignment, Delivery.ENABLED, None)
    return {
        "origin": _origin(),
        "username": USERNAME,
        "secret": secret,
        "clone_url": objective.clone_url(assignment.repository),
        "branch": assignment.branch,
    }


def _note(assignment: Assignment, status: Delivery, reason: str | None) -> None:
    Assignment.objects.filter(pk=assignment.pk, state__in=LIVE).update(
        credential_delivery_status=status, credential_delivery_reason=reason
    )
    log.info("credential_delivery", assignment=str(assignment.pk), status=status.value)


def _origin() -> str:
    parts = urlsplit(settings.PUBLIC_BASE_URL)
    return f"{parts.scheme}://{parts.netloc}"
