"""Git over HTTP, with stock git as the client, beside plain `git http-backend` under the same server.

The baseline knows no rights, hooks or receipts (`benchmarks/baseline/plain_backend.py`).

`BENCH_MEGABYTES` (200) is the size of the large push, `BENCH_CLONES` (24) how many clone at once.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.house import house, owners, say
from benchmarks.observing import MIB, Memory
from benchmarks.results import Row, quantile, report
from tests.faults.installation import Installation, answers
from tests.ports import free_port
from tests.waiting import eventually

MEGABYTES = int(os.environ.get("BENCH_MEGABYTES", "200"))
CLONES = int(os.environ.get("BENCH_CLONES", "24"))
PUSHES = 20
THREADS = "64"

AS_IT_IS = ("-c", "core.compression=0", "-c", "core.bigFileThreshold=1m")


def main(*, json: bool) -> None:
    with house() as made:
        made.add_web()
        made.await_web()
        report("git", measured(made, made.folder / "client"), as_json=json)


def measured(made: Installation, folder: Path) -> list[Row]:
    folder.mkdir()
    client, served, plain = Client(folder), _repository(made), _plain_repository(made)
    rows = [*_small(client, served, plain), *_large(made, client, served, plain)]
    return [*rows, *_clones(made, client, served, plain)]


@dataclass
class Client:
    """Stock git with nothing of the surroundings."""

    folder: Path
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        who = {
            f"GIT_{role}_{what}": "bench@example.org"
            for role in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        self.environment = plain | who | {"GIT_TERMINAL_PROMPT": "0"}

    def __call__(self, *arguments: str, cwd: Path | None = None) -> float:
        """Run it; returns how long it took, in seconds. Raises what subprocess raises."""
        started = time.monotonic()
        subprocess.run(
            ["git", *arguments], cwd=cwd or self.folder, env=self.environment, check=True, capture_output=True
        )
        return time.monotonic() - started


def _repository(made: Installation) -> str:
    """The address of a new repository, with its owner's token."""
    from accounts.models import User
    from forge.services import create_repository

    [owner] = owners(1)
    user = User.objects.get(visitor__conversations__boxes__pk=owner.boxes[0][0])
    create_repository(user, "bench")
    return f"http://x:{owner.token}@127.0.0.1:{made.port}/{user.slug}/bench.git"


def _plain_repository(made: Installation) -> str:
    """The address of a new repository behind the plain server, which is one more part of the installation."""
    root, port = made.folder / "plain", free_port()
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", root / "bench.git"], check=True
    )
    made.add(
        "plain", "-m", "gunicorn", "-k", "gthread", "--threads", THREADS, "-b", f"127.0.0.1:{port}",
        "benchmarks.baseline.plain_backend:application", GIT_PROJECT_ROOT=str(root),
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}/bench.git"
    eventually(lambda: answers(f"{address}/info/refs?service=git-upload-pack"))
    return address


def _small(client: Client, served: str, plain: str) -> list[Row]:
    say("small pushes")
    client("init", "--quiet", "--initial-branch=main", "work")
    work = client.folder / "work"

    def push(address: str, branch: str) -> float:
        client("commit", "--quiet", "--allow-empty", "-m", "x", cwd=work)
        return client("push", "--quiet", address, f"HEAD:{branch}", cwd=work)

    ours, theirs = ([push(address, "main") for _ in range(PUSHES)] for address in (served, plain))
    looks, lists = ([client("ls-remote", address) for _ in range(PUSHES)] for address in (served, plain))
    return [
        Row("push of one commit, p50", quantile(ours, 0.5) * 1000, "ms", quantile(theirs, 0.5) * 1000),
        Row("push of one commit, p95", quantile(ours, 0.95) * 1000, "ms", quantile(theirs, 0.95) * 1000),
        Row("ls-remote, p50", quantile(looks, 0.5) * 1000, "ms", quantile(lists, 0.5) * 1000),
    ]


def _large(made: Installation, client: Client, served: str, plain: str) -> list[Row]:
    say(f"a push of {MEGABYTES} MB")
    work = client.folder / "work"
    with (work / "blob").open("wb") as file:
        for _ in range(MEGABYTES):
            file.write(os.urandom(MIB))
    client(*AS_IT_IS, "add", "blob", cwd=work)
    client("commit", "--quiet", "-m", "large", cwd=work)
    with Memory(made.parts["web"].pid) as memory:
        seconds = client(*AS_IT_IS, "push", "--quiet", served, "HEAD:large", cwd=work)
    theirs = client(*AS_IT_IS, "push", "--quiet", plain, "HEAD:large", cwd=work)
    return [
        Row(f"push of {MEGABYTES} MB", seconds, "s", theirs),
        Row(
            f"push of {MEGABYTES} MB: web process grows by", memory.grown, "MiB", target="flat: under 24 MiB"
        ),
    ]


def _clones(made: Installation, client: Client, served: str, plain: str) -> list[Row]:
    say(f"{CLONES} clones at once")

    def at_once(name: str, address: str) -> float:
        clone: Callable[[int], float] = lambda number: client(  # noqa: E731 - read where it is used
            "clone", "--quiet", "--single-branch", address, f"{name}-{number}"
        )
        started = time.monotonic()
        with ThreadPoolExecutor(CLONES) as pool:
            list(pool.map(clone, range(CLONES)))
        return time.monotonic() - started

    with Memory(made.parts["web"].pid) as memory:
        ours = at_once("ours", served)
    theirs = at_once("plain", plain)
    return [
        Row(f"{CLONES} clones at once, all done", ours, "s", theirs),
        Row(f"{CLONES} clones at once: web process grows by", memory.grown, "MiB"),
    ]
