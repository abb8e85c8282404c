"""Output: how soon a log of 200 MiB is kept whole, its secrets struck out, and how fast it is read again.

The baseline of the way in is `benchmarks.baseline.plain_copy`: the same command on the same box, whose file is copied in pieces of the
same size, by hand. That of the way out is the copied file behind Python's own `http.server`, and that of the look for secrets the plain
decoding of the same text. `BENCH_MEBIBYTES` (200) is the size of the log.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from benchmarks.baseline import plain_copy
from benchmarks.house import house, owners, say
from benchmarks.observing import MIB, Cost, Ends, Memory, cost_of
from benchmarks.results import Row, report
from tests.faults.installation import Api, Installation, Owner, answers
from tests.ports import free_port
from tests.waiting import eventually

MEBIBYTES = int(os.environ.get("BENCH_MEBIBYTES", "200"))
SIZE = MEBIBYTES * MIB
LINE = "%.0f: compiled one more module of the build in 0.42 s, 3 warnings (see /build/report.html)"
PRINTS = f"seq -f '{LINE}' 1 {SIZE // len(LINE)} | head -c {SIZE}"
SAMPLE_BYTES, PIECE_BYTES = 32 * MIB, 512 * 1024
PATIENCE_SECONDS = 3600.0


def main(*, json: bool) -> None:
    with house(settings={"RUN_LOG_BYTES": str(2 * SIZE)}) as made:
        worker, _ = made.add_worker(), made.add_web()
        made.await_web()
        (owner,) = owners(1)
        say(f"{MEBIBYTES} MiB")
        with Memory(worker.pid) as memory, cost_of(worker.pid) as cost:
            run, seconds = kept(made, owner)
        say(f"  kept whole after {seconds:.1f} s\n{MEBIBYTES} MiB, baseline")
        plain = made.folder / "plain.log"
        rows = way_in(seconds, plain_copy.copy(box_of(owner), PRINTS, plain), memory, cost)
        say("the way out")
        rows += way_out(made, owner, run, plain)
        rows += looked_through(plain)
    report("output", rows, as_json=json)


def kept(made: Installation, owner: Owner) -> tuple[str, float]:
    """The run, and the seconds from its 202 until all that it printed can be read."""
    body = {"box": owner.boxes[0][0], "command": PRINTS, "idempotency_key": str(uuid.uuid4())}
    with Ends(made.database) as ends:
        run = Api(made.url, owner.token).insist("POST", "runs", json=body)["id"]
        accepted = time.time()
        eventually(lambda: run in ends.at, seconds=PATIENCE_SECONDS)
    return run, ends.at[run] - accepted


def box_of(owner: Owner) -> str:
    from boxes.models import Box

    return str(Box.objects.values_list("box_id", flat=True).get(pk=owner.boxes[0][0]))


def way_in(seconds: float, plain_seconds: float, memory: Memory, cost: Cost) -> list[Row]:
    what = f"{MEBIBYTES} MiB printed at once"
    return [
        Row(f"{what}: accepted to kept whole", seconds, "s", plain_seconds),
        Row(f"{what}: kept", MEBIBYTES / seconds, "MiB/s"),
        Row(f"{what}: worker CPU of one core", cost.cpu, "%"),
        Row(f"{what}: worker memory grows by", memory.grown, "MiB", target="flat: under 24 MiB"),
    ]


def way_out(made: Installation, owner: Owner, run: str, plain: Path) -> list[Row]:
    """Of a log in which nothing was secret: it is the plain one, byte for byte."""
    headers = {"Authorization": f"Bearer {owner.token}"}
    with Memory(made.parts["web"].pid) as memory:
        ours, digest = fetched(f"{made.url}/api/v1/runs/{run}/log/download", headers)
    with plain_server(plain.parent) as address:
        theirs, plain_digest = fetched(f"{address}/{plain.name}", {})
    assert digest == plain_digest
    started = time.monotonic()
    tail = Api(made.url, owner.token).insist("GET", f"runs/{run}/output?offset=0")
    seconds = time.monotonic() - started
    assert tail["next_offset"] == SIZE
    return [
        Row(f"download of {MEBIBYTES} MiB", ours, "s", theirs),
        Row(f"download of {MEBIBYTES} MiB: web memory grows by", memory.grown, "MiB", target="flat: under 24 MiB"),
        Row(f"the end of a log of {MEBIBYTES} MiB", 1000 * seconds, "ms"),
    ]  # fmt: skip


def fetched(address: str, headers: dict[str, str]) -> tuple[float, str]:
    """How long it took to fetch all of it, and its digest."""
    digest, started = hashlib.sha256(), time.monotonic()
    with requests.get(address, headers=headers, stream=True, timeout=120) as answer:
        answer.raise_for_status()
        for piece in answer.iter_content(MIB):
            digest.update(piece)
    return time.monotonic() - started, digest.hexdigest()


@contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    """Python's own server of files."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "http.server",
        str(port),
        "--bind",
        "127.0.0.1",
        "--directory",
        str(folder),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(f"http://127.0.0.1:{port}/"))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def looked_through(plain: Path) -> list[Row]:
    """What the look for secrets alone takes, in this process."""
    from base.redaction import Redactor

    data = plain.read_bytes()[:SAMPLE_BYTES]
    pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
    redactor = Redactor()
    ours = _processor_seconds(lambda: [redactor.feed(piece) for piece in pieces])
    theirs = _processor_seconds(lambda: [piece.decode() for piece in pieces])
    return [Row(f"{len(data) // MIB} MiB looked through for secrets, processor time", ours, "s", theirs)]


def _processor_seconds(work: Any) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
