"""Attempts at issues: made, started, ended, read.

`create` claims the issue and the box or computer, and starts the attempt; whatever starts, ends or delivers it later goes by its
row. `finish` is the only way to an end, and revokes the credential in the same transaction.
"""

from __future__ import annotations

from forge.assignments.cancelling import cancel, cancel_by_viewer
from forge.assignments.creating import create
from forge.assignments.expiring import catch_up, expire
from forge.assignments.finishing import finish
from forge.assignments.reading import Attempt, attempts_for_issue, attempts_for_issues, credential
from forge.assignments.starting import ALREADY_FINISHED, STARTED, start_running
from forge.credentials import authenticate

__all__ = [
    "ALREADY_FINISHED",
    "STARTED",
    "Attempt",
    "attempts_for_issue",
    "attempts_for_issues",
    "authenticate",
    "cancel",
    "cancel_by_viewer",
    "catch_up",
    "create",
    "credential",
    "expire",
    "finish",
    "start_running",
]
