"""Running one delegation: the agent is started, gets its session and the prompt, and is ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from asyncio.subprocess import Process
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, text_block
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation

from connector import VERSION, agents, processes
from connector.credentials import KEY, Credential
from connector.journal import ACCEPTED, PROMPTED, Delegation, Journal, until_written
from connector.keeper import KEEPS
from connector.kept import Kept, NotStarted, start
from connector.listening import Listener
from connector.logs import event
from connector.places import Pairing, Places
from connector.policy import PROBE, narrower
from connector.roots import Roots, real

OPEN_SECONDS = 120.0
"""An agent may take this long to start and to open a session."""

FLUSH_SECONDS = 1.0
BUFFER_BYTES = 50 << 20
GOES_ON = (
    "You were interrupted while you worked on the following task. Look at what is done already, do not repeat it, and go on "
    "until the task is finished.\n\n"
)
_ENDINGS = {"end_turn": "completed", "refusal": "refused", "cancelled": "cancelled"}


class Failed(Exception):
    """It cannot be done; `status` and `code` are what is told."""

    def __init__(self, status: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


@dataclass
class Run:
    """One delegation at work."""

    delegation: Delegation
    pairing: Pairing
    places: Places
    journal: Journal
    reason: str = ""
    """Why it is to stop, if it is."""
    listener: Listener = field(init=False)
    cwd: Path = field(init=False)
    """Where the folder of the delegation really is, once that was judged."""

    def __post_init__(self) -> None:
        authority = self.delegation.offer.get("authority") or {}
        own = Roots(self.pairing.roots)
        self.tier = narrower(self.pairing.tier, str(authority.get("tier")))
        self.roots = own.within(
            Roots([root for root in authority.get("roots") or [] if isinstance(root, str)])
        )
        self.credential = Credential(self.places.credentials, self.delegation.job)
        self.listener = Listener(self.tier, self.roots, str(self.delegation.offer.get("cwd")), self._tell)

    async def run(self) -> None:
        """Run it to its end, and tell that. Ended from outside (the connector stops) it tells nothing, and is gone on with."""
        started = time.monotonic()
        try:
            await processes.to_its_end(self.delegation.job)  # what a life before this one left
            result = await self._result()
        except Failed as failure:
            result = {
                "status": failure.status,
                "code": failure.code,
                "detail": f"{failure.code}: {failure.detail}",
            }
        except asyncio.CancelledError:
            if not self.reason:
                raise
            result = {"status": "cancelled", "detail": self.reason}
        await until_written(lambda: self._end(result))
        event(
            "delegation_ended", job=self.delegation.job, status=result["status"], code=result.get("code", "-"),
            seconds=round(time.monotonic() - started, 1), tool_calls=self.listener.tool_calls,
        )  # fmt: skip

    def _end(self, result: dict[str, Any]) -> None:
        self.listener.flush()
        self.journal.ended(self.delegation, **result, **self._told())
        self.credential.forget()

    async def _result(self) -> dict[str, Any]:
        self.cwd = check(
            self.pairing,
            self.tier,
            self.roots,
            str(self.delegation.offer.get("agent_id")),
            str(self.delegation.offer.get("cwd")),
        )
        roots: list[processes.Root] = []
        try:
            async with asyncio.timeout(max(0.0, self.delegation.deadline - time.time())):
                kept = await self._start()
                roots = kept.roots
                return await self._talk_to(kept)
        except TimeoutError:
            return {"status": "timeout", "detail": "its time was over"}
        finally:
            await processes.to_its_end(self.delegation.job, roots)

    async def _talk_to(self, kept: Kept) -> dict[str, Any]:
        telling = asyncio.create_task(self._tell_regularly())
        try:
            pid = await kept.await_start()
            event("agent_started", job=self.delegation.job, agent=self.delegation.offer["agent_id"], pid=pid)
            return await self._talk(kept.process)
        except NotStarted as error:
            raise Failed(
                "unavailable", "agent_not_available", f"the agent does not start ({error})"
            ) from None
        except (ConnectionError, BrokenPipeError):
            raise Failed("failed", "agent_exited", f"the agent ended ({await kept.end()})") from None
        except RequestError as error:
            raise Failed(
                "failed", "agent_error", f"the agent answered with an error ({error.code})"
            ) from None
        finally:
            telling.cancel()

    async def _start(self) -> Kept:
        offer = self.delegation.offer
        agent = agents.installed(self.pairing.agents)[offer["agent_id"]]
        surroundings = (
            os.environ
            | {processes.MARK: self.delegation.job, KEEPS: self.delegation.job}
            | self.credential.environment(offer.get(KEY))
        )
        try:
            return await start(agent.command, self.cwd, surroundings, BUFFER_BYTES)
        except OSError as error:
            raise Failed(
                "unavailable", "agent_not_available", f"the agent does not start ({error.strerror})"
            ) from None

    async def _talk(self, process: Process) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        link = connect_to_agent(self.listener, process.stdin, process.stdout)  # type: ignore[arg-type]  # what it lacks we do not offer
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                session_id, prompt = await self._open(link)
        except TimeoutError:
            raise Failed("failed", "agent_not_ready", "the agent opened no session in time") from None
        self.journal.prompted(self.delegation)
        try:
            answer = await link.prompt(session_id=session_id, prompt=[text_block(prompt)])
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):  # an agent that hears of it may put its things in order
                await asyncio.wait_for(link.cancel(session_id=session_id), 1)
            raise
        with contextlib.suppress(Exception):
            await link.close()
        status = _ENDINGS.get(answer.stop_reason, "failed")
        if status == "completed":
            return {"status": status}
        return {
            "status": status,
            "code": f"agent_{answer.stop_reason}",
            "detail": f"the agent stopped: {answer.stop_reason}",
        }

    async def _open(self, link: Any) -> tuple[str, str]:
        """A session, and what to ask in it."""
        hello = await link.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=False
            ),
            client_info=Implementation(name="openagents-connector", version=VERSION),
        )
        prompt = str(self.delegation.offer["prompt"])
        if self.delegation.session_id and await self._load(link, hello.agent_capabilities):
            return self.delegation.session_id, GOES_ON + prompt
        made = await link.new_session(cwd=str(self.cwd), mcp_servers=[])
        self.journal.opened(self.delegation, made.session_id, _names(made))
        return made.session_id, prompt

    async def _load(self, link: Any, able: Any) -> bool:
        """Take the earlier session up again. False if nothing was asked in it, so that another will do as well."""
        was_prompted = self.delegation.phase in {PROMPTED, ACCEPTED}
        known = {
            "cwd": str(self.cwd),
            "session_id": self.delegation.session_id,
            "mcp_servers": [],
        }
        self.listener.replaying = True
        try:
            if able is not None and able.load_session:
                loaded = await link.load_session(**known)
            elif (
                able is not None
                and able.session_capabilities
                and able.session_capabilities.resume is not None
            ):
                loaded = await link.resume_session(**known)
            else:
                loaded = None
                if was_prompted:
                    raise Failed(
                        "failed",
                        "session_not_resumable",
                        "the agent cannot go on with a session after a restart",
                    )
                return False
        except RequestError:
            if was_prompted:
                raise Failed(
                    "failed", "session_not_resumable", "the agent does not know the session any more"
                ) from None
            return False
        finally:
            self.listener.replaying = False
        self.journal.opened(self.delegation, self.delegation.session_id, _names(loaded))
        return True

    async def _tell_regularly(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            with contextlib.suppress(OSError, sqlite3.Error):  # told at the end, when there may be room again
                self.listener.flush()

    def _tell(self, kind: str, **body: Any) -> None:
        self.journal.tell(kind, job=self.delegation.job, attempt=self.delegation.attempt, **body)

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "prose": self.listener.prose,
            "tool_calls": self.listener.tool_calls,
            "failed_tools": self.listener.failed_tools,
        }
        return told | ({"mode": self.listener.mode} if self.listener.mode else {})


def check(pairing: Pairing, tier: str, roots: Roots, agent_id: str, cwd: str) -> Path:
    """Whether a delegation to this agent in this folder may be run here at all; returns where the folder really is. Raises
    Failed."""
    if tier == PROBE:
        raise Failed("refused", "agent_not_available", "the tier probe runs nothing")
    if agent_id not in agents.installed(pairing.agents):
        raise Failed("unavailable", "agent_not_available", "there is no such agent")
    folder = real(cwd)
    if folder is None or not roots.holds(str(folder)) or not folder.is_dir():
        raise Failed("refused", "cwd_not_allowed", "the folder is not inside a declared one")
    return folder


def _names(session: Any) -> dict[str, str]:
    """What a session says of its model and mode, as far as it does."""
    names: dict[str, str] = {}
    modes = getattr(session, "modes", None)
    if modes is not None:
        names["mode"] = str(modes.current_mode_id)[:128]
    kinds = {"model": "model", "thought_level": "reasoning", "mode": "mode"}
    for option in getattr(session, "config_options", None) or []:
        name = kinds.get(option.category) if isinstance(option.category, str) else None
        if name and isinstance(getattr(option, "current_value", None), str):
            names[name] = option.current_value[:128]
    return names
