"""What a run left: its whole log, as the API gives it, and its processes on this machine."""

from __future__ import annotations

import psutil

from connector.keeper import KEEPS
from connector.processes import MARK
from tests.faults.installation import Api


def whole_log(api: Api, run_id: str) -> str:
    text, offset = "", 0
    while True:
        piece = api.insist("GET", f"runs/{run_id}/log", params={"offset": offset})
        text += piece["output"]
        if piece["next_offset"] <= offset:
            return text
        offset = piece["next_offset"]


def left_on_the_machine(run_ids: set[str]) -> list[int]:
    """Processes of any box that carry one of these runs' folders in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            folder = process.environ().get("OPENAGENTS_RUN_DIRECTORY", "")
        except psutil.Error:
            continue
        if folder.rpartition("/")[2] in run_ids:
            found.append(process.pid)
    return found


def left_of_delegations(job_ids: set[str]) -> list[int]:
    """Agents of these jobs on any computer here, what they started, and their keepers."""
    found = []
    for process in psutil.process_iter():
        try:
            marks = process.environ()
        except psutil.Error:
            continue
        if job_ids & {marks.get(MARK), marks.get(KEEPS)}:
            found.append(process.pid)
    return found
