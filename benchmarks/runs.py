"""Runs: how soon they start and end, how often the provider is asked, and what five hundred of them cost.

The baseline is `benchmarks.baseline.fixed_polls`: a process for each run that looks once a second. Both drive the same
boxes of the same provider, one after the other. `BENCH_RUNS` and `BENCH_MANY` change the numbers of runs (100, 500).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.house import house, owners, say
from benchmarks.observing import Ends, Lateness, cost_of
from benchmarks.results import Row, quantile, report
from tests.faults.installation import REPOSITORY, Api, Installation, Owner
from tests.waiting import eventually

AT_ONCE = int(os.environ.get("BENCH_RUNS", "100"))
MANY = int(os.environ.get("BENCH_MANY", "500"))
SILENT = 10
WINDOW_SECONDS = 30.0
STEADY_SECONDS = 0.2
ENDS_PER_SECOND = 10.0
NOW = 'printf "%s\\n" "$EPOCHREALTIME"'  # bash's own clock: no process is started to tell the time


@dataclass(frozen=True)
class Times:
    """Seconds from acceptance to the command's own first words, and from its last words to a readable end."""

    to_start: list[float]
    to_end: list[float]


def main(*, json: bool) -> None:
    with house() as made:
        worker, _ = made.add_worker(), made.add_web()
        made.await_web()
        rows = told([idle(worker.pid)])
        say(f"{AT_ONCE} boxes")
        few = owners(AT_ONCE)
        with Baseline(made) as baseline:
            rows += told(steady(made, few))
            rows += told(burst(made, few, baseline))
            rows += told([silence(made, few[:SILENT], baseline)])
        if MANY:
            say(f"{MANY} boxes")
            rows += told(many(made, few + owners(MANY - AT_ONCE)))
    report("runs", rows, as_json=json)


class Baseline:
    """Runs the other driver, with our worker out of the way."""

    def __init__(self, made: Installation) -> None:
        self.made = made

    def __enter__(self) -> Baseline:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def drive(self, wanted: Sequence[tuple[Owner, str]]) -> tuple[dict[str, float], dict[str, float]]:
        """Start these commands at once and stay until the last has ended: when each was accepted, and the totals."""
        accepted: dict[str, float] = {}
        with self.process(wanted) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line)
                if "run" not in said:
                    return accepted, said
                accepted[said["run"]] = said["accepted"]
        raise AssertionError("the baseline ended early")

    def process(self, wanted: Sequence[tuple[Owner, str]]) -> subprocess.Popen[str]:
        worker = self.made.parts["worker"]
        worker.stop()
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.baseline.fixed_polls"], cwd=REPOSITORY, text=True,
            env=self.made.environment() | {"LOG_LEVEL": "WARNING"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(
            json.dumps([[conversation_of(owner), owner.boxes[0][0], command] for owner, command in wanted])
        )
        process.stdin.close()
        return process


def told(rows: list[Row]) -> list[Row]:
    """The rows, said as they come: the whole takes minutes."""
    for row in rows:
        say(f"  {row.case}: {row.value:.4g} {row.unit} (baseline {row.baseline})")
    return rows


def idle(worker: int) -> Row:
    """The worker with nothing to do, its start left out."""
    time.sleep(5)
    with cost_of(worker) as cost:
        time.sleep(20)
    return Row("idle worker, CPU of one core", cost.cpu, "%", target="under 1 %")


def steady(made: Installation, few: Sequence[Owner]) -> list[Row]:
    """One start after the other, until there are as many runs at once; they end one after the other as well."""
    say("one after the other")
    longest = len(few) * STEADY_SECONDS + 5
    wanted = [(owner, f"{NOW}; sleep {longest}; {NOW}") for owner in few]
    with Ends(made.database) as ends:
        accepted = at_once(made, wanted, every=STEADY_SECONDS)
        await_ends(ends, accepted)
    ours = times(accepted, ends.at)
    what = f"up to {len(few)} runs, {1 / STEADY_SECONDS:.0f} started a second"
    start, end = f"{what}: accepted to process started", f"{what}: process exit to terminal row"
    return [
        Row(f"{start}, p50", 1000 * quantile(ours.to_start, 0.5), "ms"),
        Row(f"{start}, p95", 1000 * quantile(ours.to_start, 0.95), "ms", target="under 150 ms"),
        Row(f"{end}, p50", 1000 * quantile(ours.to_end, 0.5), "ms"),
        Row(f"{end}, p95", 1000 * quantile(ours.to_end, 0.95), "ms", target="under 400 ms"),
    ]


def burst(made: Installation, few: Sequence[Owner], baseline: Baseline) -> list[Row]:
    """Every box gets a command in the same moment; they end spread over some seconds."""
    commands = [f"{NOW}; sleep {5 + n / ENDS_PER_SECOND:.3f}; {NOW}" for n in range(len(few))]
    wanted = list(zip(few, commands, strict=True))
    say("at once")
    with Ends(made.database) as ends:
        accepted = at_once(made, wanted)
        await_ends(ends, accepted)
    ours = times(accepted, ends.at)
    say("at once, baseline")
    with Ends(made.database) as ends:
        accepted, _ = baseline.drive(wanted)
        await_ends(ends, accepted)
    theirs = times(accepted, ends.at)
    made.parts["worker"].ensure()
    await_worker()
    what = f"{len(few)} runs at once"
    start, end = f"{what}: accepted to process started", f"{what}: process exit to terminal row"
    return [
        compared(f"{start}, p50", ours.to_start, theirs.to_start, 0.5),
        compared(f"{start}, p95", ours.to_start, theirs.to_start, 0.95, "under 150 ms"),
        compared(f"{end}, p50", ours.to_end, theirs.to_end, 0.5),
        compared(f"{end}, p95", ours.to_end, theirs.to_end, 0.95, "under 400 ms"),
    ]


def silence(made: Installation, few: Sequence[Owner], baseline: Baseline) -> Row:
    """What runs that print nothing cost in requests, once they have been running for a while."""
    say("silent runs")
    wanted = [(owner, f"sleep {WINDOW_SECONDS + 15}") for owner in few]
    accepted = at_once(made, wanted)
    await_state(accepted, "running")
    time.sleep(5)
    before = requests_for(accepted)
    time.sleep(WINDOW_SECONDS)
    ours = requests_for(accepted) - before
    with Ends(made.database) as ends:
        await_ends(ends, accepted)
    say("silent runs, baseline")
    started = time.monotonic()
    _, totals = baseline.drive([(owner, f"sleep {WINDOW_SECONDS}") for owner in few])
    minutes = (time.monotonic() - started) / 60
    made.parts["worker"].ensure()
    await_worker()
    per_minute = 60 / WINDOW_SECONDS / len(few)
    return Row("requests a minute of a silent run", ours * per_minute, "/min",
               totals["requests"] / len(few) / minutes, "at most a fifth")  # fmt: skip


def many(made: Installation, all_owners: Sequence[Owner]) -> list[Row]:
    """One run on every box, a tenth of them printing each second, watched for a while once all are running."""
    worker = made.parts["worker"]
    seconds = 60 + len(all_owners) * 0.2
    quiet, loud = f"sleep {seconds}", f"for n in $(seq {int(seconds)}); do echo $n; sleep 1; done"
    wanted = [(owner, loud if n % 10 == 0 else quiet) for n, owner in enumerate(all_owners)]
    say("starting")
    accepted = at_once(made, wanted, threads=32)
    await_state(accepted, "running")
    time.sleep(5)
    say("watching")
    before = requests_for(accepted)
    with Lateness(made.database) as late, cost_of(worker.pid) as costs:
        time.sleep(WINDOW_SECONDS)
    asked = requests_for(accepted) - before
    alive = states(accepted).count("running")
    what = f"{alive} runs at once"
    return [
        Row(f"{what}: latest look, in intervals of 1 s", late.worst, "", target="at most 2"),
        Row(f"{what}: look is late by, p95", quantile(late.seen, 0.95), "s"),
        Row(f"{what}: worker CPU of one core", costs.cpu, "%", target="under 70 %"),
        Row(f"{what}: worker memory", costs.rss, "MiB"),
        Row(f"{what}: requests to the provider", asked / WINDOW_SECONDS, "/s", float(alive)),
    ]


def at_once(
    made: Installation, wanted: Sequence[tuple[Owner, str]], *, threads: int = 0, every: float = 0.0
) -> dict[str, float]:
    """Start these commands through the API; when each was accepted.

    All in the same moment; or by so many `threads`, each one after the other; or one `every` so many seconds.
    """
    together = threading.Barrier(len(wanted)) if not threads else None

    def start(pair: tuple[Owner, str]) -> tuple[str, float]:
        api = Api(made.url, pair[0].token)
        if together:
            time.sleep(every * together.wait(120))
        body = {"box": pair[0].boxes[0][0], "command": pair[1], "idempotency_key": str(uuid.uuid4())}
        answer = api("POST", "runs", json=body)
        accepted = time.time()
        assert answer.status_code == 202, answer.text
        return answer.json()["id"], accepted

    with ThreadPoolExecutor(threads or len(wanted)) as pool:
        return dict(pool.map(start, wanted))


def times(accepted: dict[str, float], ended: dict[str, float]) -> Times:
    """From the clocks of client, command and observer, which are one machine's."""
    from runs.models import Run

    to_start, to_end = [], []
    for run in Run.objects.filter(pk__in=accepted):
        assert run.state == "completed", (run.state, run.failure_reason)
        started, exited = (float(line) for line in run.output.split())
        to_start.append(max(0.0, started - accepted[str(run.pk)]))
        to_end.append(ended[str(run.pk)] - exited)
    return Times(to_start, to_end)


def compared(case: str, ours: list[float], theirs: list[float], share: float, target: str = "") -> Row:
    return Row(case, 1000 * quantile(ours, share), "ms", 1000 * quantile(theirs, share), target)


def requests_for(accepted: dict[str, Any]) -> int:
    """Requests to the provider for these runs so far: each claim sends one command."""
    from runs.models import Run

    return sum(Run.objects.filter(pk__in=accepted).values_list("generation", flat=True))


def conversation_of(owner: Owner) -> str:
    from boxes.models import Box

    return str(Box.objects.values_list("conversation_id", flat=True).get(pk=owner.boxes[0][0]))


def await_worker() -> None:
    from base.leases import live_workers

    eventually(live_workers)


def await_ends(ends: Ends, accepted: dict[str, Any]) -> None:
    eventually(lambda: accepted.keys() <= ends.at.keys(), seconds=300)


def await_state(accepted: dict[str, Any], state: str) -> None:
    eventually(lambda: set(states(accepted)) == {state}, seconds=300)


def states(accepted: dict[str, Any]) -> list[str]:
    from runs.models import Run

    return list(Run.objects.filter(pk__in=accepted).values_list("state", flat=True))
