"""Counters that several processes keep in one folder, and what becomes of them on a full disk."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from openagents_site.metrics import folder

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db


COUNTING = """
import os, sys
from pathlib import Path
from openagents_site.metrics.folder import count_in
count_in(Path(sys.argv[1]), "worker")
from base import measures
measures.TASKS.labels("runs", "settled").inc(int(sys.argv[2]))
"""


SUMMING = """
import sys
from prometheus_client.multiprocess import MultiProcessCollector
from openagents_site.metrics.folder import files_below
from pathlib import Path
merged = MultiProcessCollector.merge(files_below(Path(sys.argv[1])))
print(sum(sample.value for family in merged for sample in family.samples if sample.name == "openagents_tasks_total"))
"""


def run(program: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_counters_of_several_processes_are_added_up(tmp_path: Path):
    this_process_counts_in(tmp_path)

    run(COUNTING, str(tmp_path), "3")
    run(COUNTING, str(tmp_path), "4")

    assert float(run(SUMMING, str(tmp_path))) == 7


def test_counters_begin_anew_once_every_process_is_gone(tmp_path: Path):
    run(COUNTING, str(tmp_path), "3")
    run(COUNTING, str(tmp_path), "4")

    assert float(run(SUMMING, str(tmp_path))) == 4


def this_process_counts_in(folder_of_all: Path) -> None:
    own = folder_of_all / socket.gethostname()
    own.mkdir()
    (own / f"counter_{os.getpid()}.db").touch()


FULL = """
mount -t tmpfs -o size=160k full "$1" && "$2" -c "$3" "$1"
"""


FILLING = """
import os, socket, sys
from pathlib import Path
from openagents_site.metrics.folder import count_in
place = Path(sys.argv[1])
count_in(place, "worker")
from base import measures
count = measures.TASKS.labels
count("before", "settled").inc()
filling = os.open(place / "what fills the disk", os.O_CREAT | os.O_WRONLY)
try:
    while os.write(filling, b"x" * 4096):
        pass
except OSError as error:
    print(error.strerror)
for number in range(3000):
    count(f"driver {number}", "settled").inc()
measures.PASSES.labels("late", "done").inc()
count("before", "settled").inc()
print(count("before", "settled")._value.get(), count("driver 2999", "settled")._value.get())
"""


def test_a_full_disk_costs_the_counters_and_nothing_else(tmp_path: Path):
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", FULL, "sh", tmp_path, sys.executable, FILLING],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done
    assert done.stdout.splitlines() == ["No space left on device", "2.0 1.0"]
    assert "metrics_kept_in_memory" in done.stderr


def test_a_command_counts_for_itself_alone(tmp_path: Path):
    assert folder.count_in(tmp_path, "") is None
    assert list(tmp_path.iterdir()) == []
