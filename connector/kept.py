"""An agent beneath its keeper, as the connector sees it."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connector import keeper
from connector.processes import Root

START_SECONDS = 60.0
END_SECONDS = 2.0


class NotStarted(Exception):
    """The agent does not start; the text is why."""


@dataclass
class Kept:
    """The keeper's process, whose standard input and output are the agent's, and the agent's number once that is known."""

    process: Process
    agent: int | None = None
    roots: list[Root] = field(default_factory=list)
    """By whose sessions what belongs to it is found."""

    def __post_init__(self) -> None:
        self._note(self.process.pid)

    async def await_start(self) -> int:
        """Until the agent runs; its number. Raises NotStarted."""
        word, number = await self._said(START_SECONDS)
        if word != "started":
            raise NotStarted(os.strerror(number) if word == "failed" else "its keeper says nothing")
        self.agent = number
        self._note(number)
        return number

    async def end(self) -> str:
        """How the agent ended, in words."""
        word, number = await self._said(END_SECONDS)
        return f"exit code {number}" if word == "ended" else "it closed its output"

    def _note(self, pid: int) -> None:
        if (root := Root.of(pid)) is not None:
            self.roots.append(root)

    async def _said(self, seconds: float) -> tuple[str, int]:
        """The keeper's next line; nothing where it says none in time."""
        assert self.process.stderr is not None
        try:
            async with asyncio.timeout(seconds):
                word, _, number = (await self.process.stderr.readline()).decode().strip().partition(" ")
            return word, int(number)
        except (TimeoutError, ValueError):
            return "", 0


async def start(command: Sequence[str], cwd: Path, surroundings: Mapping[str, str], limit: int) -> Kept:
    """Start the keeper of an agent; `limit` is how many bytes one message of the agent may have. Raises OSError where there is
    no room for a process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", keeper.__file__, *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=cwd,
        env=surroundings, limit=limit, start_new_session=True,
    )  # fmt: skip
    return Kept(process)
