"""A supervisor in a process of its own, for tests that kill it: `python -m tests.site.launcher.keeper FOLDER [GRACE]`.

Keeps what FOLDER/Procfile names, with the folders `run` and `logs` inside FOLDER.
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

from openagents_site.launcher import procfile, records
from openagents_site.launcher.child import Place
from openagents_site.launcher.logs import LogFile
from openagents_site.launcher.parts import KILLED_AT_ONCE, parts_of
from openagents_site.launcher.supervisor import Supervisor
from openagents_site.launcher.terminal import Terminal


def main(folder: Path, stop_seconds: float) -> None:
    run, logs = folder / "run", folder / "logs"
    run.mkdir(exist_ok=True)
    logs.mkdir(exist_ok=True)
    terminal, log = Terminal(verbose=True), LogFile(logs, "supervisor")
    for name in records.end_leftovers(run, KILLED_AT_ONCE):
        terminal.event(name, "was left running and has been ended")
    place = Place(checkout=folder, run_folder=run, mark=uuid.uuid4().hex)
    parts = parts_of(procfile.read(folder / "Procfile"), lambda _: os.environ, place, logs)
    for part in parts:
        part.stop_seconds = stop_seconds
    supervisor = Supervisor(parts, terminal, log)
    supervisor.take_signals()
    supervisor.run()
    terminal.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 20.0)
