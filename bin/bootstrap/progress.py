"""Running a program that takes a while, and showing that it moves."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from layout import LOG, VENV

CLOCK_TICK_SECONDS = 0.02  # by how much a file may seem older than it is


def clean_environment() -> dict[str, str]:
    """The environment without what would make another Python's packages visible."""
    hidden = {"PYTHONHOME", "PYTHONPATH", "PYTHONSAFEPATH"}
    return {name: value for name, value in os.environ.items() if name not in hidden}


def run(command: list[str], on_output: Callable[[str], None], environment: dict[str, str]) -> tuple[int, str]:
    """Run to the end, telling `on_output` each line, and "" each half second without one. Exit status and output."""
    said: list[str] = []
    with (
        LOG.open("a") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
        ) as process,
    ):
        assert process.stdout is not None
        pending = b""
        while True:
            if not select.select([process.stdout], [], [], 0.5)[0]:
                on_output("")
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            *lines, pending = (pending + chunk).split(b"\n")
            if not chunk:
                lines = [pending]
            for line in (raw.decode(errors="replace") for raw in lines):
                said.append(line)
                log.write(line + "\n")
                on_output(line)
            if not chunk:
                break
    return process.returncode, "\n".join(said)


class Progress:
    """What is being done: one moving line on a terminal, else a plain line every ten packages or ten seconds."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.began = self.told = time.monotonic()
        self.moving = sys.stdout.isatty()
        self.seen = 0
        self.detail = ""
        self.unpacking: list[str] = []  # in the order in which pip does it
        self.unpacked_since = 0.0
        self._show(f"{what} ...")

    def read_pip(self, line: str) -> None:
        """Follow pip's own words."""
        if line.startswith("Collecting "):
            self.seen += 1
            self.detail = f": {self.seen}, {re.split(r'[=<>!; ]', line[11:])[0]}"
            if not self.moving and self.seen % 10 == 0:
                return self._plain()
        elif line.startswith("Installing collected packages"):
            self.unpacking = [name.strip() for name in line.partition(":")[2].split(",")]
            self.unpacked_since = time.time()
            if not self.moving:
                self._follow_unpacking()
                return self._plain()
        return self.tick("")

    def tick(self, _line: str) -> None:
        """Something moved, or time passed."""
        self._follow_unpacking()
        if self.moving:
            self._show(f"{self.what}{self.detail} ({time.monotonic() - self.began:.0f} s)")
        elif time.monotonic() - self.told > 10:
            self._plain()

    def end(self) -> None:
        self._show(f"{self.what}: {time.monotonic() - self.began:.0f} s")
        if self.moving:
            print(flush=True)

    def _follow_unpacking(self) -> None:
        """pip says nothing while it unpacks, but each package that is done has left its description."""
        if self.unpacking:
            done = min(_installed_since(self.unpacked_since), len(self.unpacking) - 1)
            self.detail = f": unpacking {done + 1} of {len(self.unpacking)}, {self.unpacking[done]}"

    def _plain(self) -> None:
        self.told = time.monotonic()
        self._show(f"  {self.what}{self.detail} ({time.monotonic() - self.began:.0f} s)")

    def _show(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\033[K{text[:width]}" if self.moving else text, end="" if self.moving else "\n", flush=True)


def _installed_since(moment: float) -> int:
    """How many packages of the environment were written after `moment` (seconds since 1970)."""
    done = 0
    for written in VENV.glob("lib/python*/site-packages/*.dist-info/RECORD"):
        try:
            done += written.stat().st_mtime >= moment - CLOCK_TICK_SECONDS
        except OSError:  # it is just being replaced
            continue
    return done
