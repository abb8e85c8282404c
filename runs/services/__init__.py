"""The writers of the ledger of runs, and its readings."""

from __future__ import annotations

from runs.services.admission import start_run
from runs.services.cancelling import cancel, cancel_of_owner
from runs.services.reading import LogSlice, Output, get_run, list_runs, log_text, read_log, read_output
from runs.services.recording import finish, record_poll
from runs.services.recovery import recover

__all__ = [
    "LogSlice",
    "Output",
    "cancel",
    "cancel_of_owner",
    "finish",
    "get_run",
    "list_runs",
    "log_text",
    "read_log",
    "read_output",
    "record_poll",
    "recover",
    "start_run",
]
