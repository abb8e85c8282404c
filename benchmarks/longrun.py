"""Mixed load on the embedded installation for many minutes: what does not stay as it was, and what is left over.

`bin/bench longrun --minutes 30`. Owners make boxes, run commands of known output, try an issue and have a job done, side by
side; others watch the output, look at the pages, and receive webhooks. In the second half memory, open files and
threads of each part must be flat, and so must rows and sizes of each table that does not grow with the ledger. Afterwards nothing
may be stuck, and no log may tell of an error. The exit status is 1 if anything of this is not so. `BENCH_OWNERS` (6) and
`BENCH_SEED` change the load.
"""

from __future__ import annotations

import json as json_module
import os
import random
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.house import say
from benchmarks.jobs import slow_model
from benchmarks.long import aftermath, judgement
from benchmarks.long.embedded import Embedded
from benchmarks.long.load import Load, Owner, look_around, view
from benchmarks.long.samples import Samples
from benchmarks.results import Row, as_object, as_table
from tests.webhooks.receiver import Receiver

OWNERS = int(os.environ.get("BENCH_OWNERS", "6"))
SEED = int(os.environ.get("BENCH_SEED", "1"))
VIEWERS = 6
CALLS, MODEL_SECONDS = 2, 0.5
MINUTES = 30.0
PARTS_EVERY_SECONDS = 10.0
TABLES_EVERY_SECONDS = 60.0
SETTLE_SECONDS = 180.0
SETTINGS = {"WORK_MODEL": "slow", "WEBHOOKS_ALLOW_HTTP": "true", "WEBHOOKS_ALLOW_PRIVATE": "true"}


def main(*, json: bool, minutes: float = MINUTES) -> int:
    """The exit status."""
    with (
        slow_model(calls=CALLS, seconds=MODEL_SECONDS) as base_url,
        Receiver() as receiver,
        Embedded(SETTINGS | {"WORK_MODEL_BASE_URL": base_url}) as installation,
    ):
        rows, problems = lived(installation, receiver, minutes)
        status = installation.stop()
        problems += [f"bin/up ended with exit status {status}"] if status else []
        errors, warnings = aftermath.error_lines(installation.state)
    problems += [f"{count} times in {line}" for line, count in errors.items()]
    rows.append(Row("lines of the logs that warn", sum(warnings.values()), ""))
    for line, count in warnings.most_common(20):
        say(f"  warned {count} times: {line}")
    tell(rows, problems, as_json=json)
    return 1 if problems else 0


def lived(installation: Embedded, receiver: Receiver, minutes: float) -> tuple[list[Row], list[str]]:
    """What the load did and what was seen of it, and what is wrong."""
    say(f"{OWNERS} owners, {VIEWERS} viewers, {minutes:g} minutes, seed {SEED}, {installation.url}")
    load, samples = Load(installation.url), Samples()
    owners = [
        Owner(installation.url, token, SEED * 1000 + number)
        for number, token in enumerate(installation.owners(OWNERS))
    ]
    owners[0].webhook(receiver.url)
    samples.take_tables(installation.database, 0)
    for owner in owners:
        load.begin(lambda load, owner: owner.live(load), owner)
    for number in range(VIEWERS):
        load.begin(view, random.Random(number))  # noqa: S311 - a choice, no secret
    load.begin(look_around, installation.private("admin_password"))
    watched(installation, load, samples, minutes)
    problems = [f"still at it after the end: {thread.name}" for thread in load.end(SETTLE_SECONDS)]
    stuck = aftermath.once_quiet(installation.database)
    problems += [f"stuck: {count} {what}" for what, count in stuck.items()]
    problems += [f"doctor: {finding}" for finding in aftermath.doctor(installation)]
    problems += load.wrong
    part_rows, part_problems = judgement.of_parts(samples, minutes)
    table_rows, table_problems = judgement.of_tables(samples, minutes)
    done = [Row(f"{name} done", count, "") for name, count in sorted(load.done.items())]
    done.append(Row("deliveries received", len(receiver.received), ""))
    return done + part_rows + table_rows, problems + part_problems + table_problems


def watched(installation: Embedded, load: Load, samples: Samples, minutes: float) -> None:
    """Take samples until the time is over, and say how it goes."""
    seconds = minutes * 60
    with progress() as shown:
        bar = shown.add_task("", total=seconds)
        next_tables = TABLES_EVERY_SECONDS
        while samples.seconds < seconds:
            samples.take_parts(installation.leaders())
            if samples.seconds >= next_tables:
                samples.take_tables(installation.database, load.actions)
                next_tables += TABLES_EVERY_SECONDS
                shown.console.print(minute(load, samples), highlight=False)
            shown.update(bar, completed=samples.seconds, description=dict_words(load.done))
            time.sleep(PARTS_EVERY_SECONDS)
    samples.take_tables(installation.database, load.actions)


def progress() -> Progress:
    """A bar where there is a terminal; the lines of the minutes go to standard error in any case."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(stderr=True, soft_wrap=True), transient=True)


def minute(load: Load, samples: Samples) -> str:
    memory = ", ".join(f"{name} {taken[-1][1].memory:.0f}" for name, taken in sorted(samples.parts.items()))
    return (
        f"minute {samples.seconds / 60:.0f}: {dict_words(load.done)}; MiB: {memory}; wrong: {len(load.wrong)}"
    )


def dict_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def tell(rows: list[Row], problems: list[str], *, as_json: bool) -> None:
    if as_json:
        told: dict[str, Any] = json_module.loads(as_object("longrun", rows))
        print(json_module.dumps(told | {"problems": problems}))
        return
    print(as_table("longrun", rows))
    print()
    print("\n".join(f"WRONG: {problem}" for problem in problems) or "Everything stayed as it was.")
    sys.stdout.flush()
