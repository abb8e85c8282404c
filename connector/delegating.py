"""All delegations of this computer: taken, run some at a time, cancelled, and gone on with after a restart."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

from connector import agents
from connector.credentials import KEY, Credential, forget_all_but
from connector.journal import ENDED, Delegation, Journal, until_written
from connector.logs import event, trouble
from connector.places import Pairing, Places
from connector.policy import narrower
from connector.processes import to_its_end
from connector.roots import Roots
from connector.running import Failed, Run, check

AT_ONCE = 4
LONGEST_MS = 3_600_000
_NEEDED = ("agent_id", "prompt", "cwd")


class Delegations:
    """What is at work here. For one event loop."""

    def __init__(self, pairing: Pairing, places: Places, journal: Journal) -> None:
        self.pairing, self.places, self.journal = pairing, places, journal
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, Run] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    def resume(self) -> None:
        """Go on with what a life before this one has left, and remove the credentials of what it has ended."""
        alive = [found for found in self.journal.delegations() if found.phase != ENDED]
        forget_all_but(self.places.credentials, {found.job for found in alive})
        for delegation in alive:
            event("delegation_resumed", job=delegation.job, phase=delegation.phase)
            self._start(delegation)

    async def stop(self) -> None:
        """End every agent and tell nothing: the next life goes on."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def take(self, offer: dict[str, Any]) -> None:
        """Keep an offer, in the journal's change that hears it. One that is known is known."""
        job, attempt = str(UUID(str(offer.get("job")))), int(offer.get("attempt") or 0)
        known = self.journal.delegation(job)
        if known is not None and known.attempt >= attempt:
            return
        credential = Credential(self.places.credentials, job)
        kept = {**offer, KEY: credential.keep(offer.get(KEY))} if KEY in offer else dict(offer)
        seconds = min(max(1, int(offer.get("timeout_ms") or 0)), LONGEST_MS) / 1000
        self.journal.take(job, attempt, kept, time.time() + seconds)
        event("delegation_taken", job=job, attempt=attempt, agent=offer.get("agent_id"))

    def start(self, job: str) -> None:
        """Run what was taken, an older attempt of it being ended first."""
        delegation = self.journal.delegation(job)
        if delegation is not None and delegation.phase != ENDED:
            self._start(delegation)

    def cancel(self, job: str, reason: str) -> None:
        """End it because nobody wants it any more."""
        delegation = self.journal.delegation(job)
        if delegation is None or delegation.phase == ENDED:
            return
        event("delegation_cancelled", job=job, reason=reason)
        run, task = self._runs.get(job), self._tasks.get(job)
        if run is not None and task is not None and not task.done():
            if run.reason:
                return  # it is being ended already: not to be disturbed in it
            run.reason = f"cancelled by its owner ({reason})"
            task.cancel()
        else:
            self.journal.ended(delegation, status="cancelled", detail="cancelled before it began")
            Credential(self.places.credentials, job).forget()

    def judge(self, question: dict[str, Any]) -> dict[str, Any]:
        """Whether a delegation would be taken."""
        tier = narrower(self.pairing.tier, str(question.get("tier")))
        try:
            check(
                self.pairing,
                tier,
                Roots(self.pairing.roots),
                str(question.get("agent_id")),
                str(question.get("cwd")),
            )
        except Failed as failure:
            return {"allowed": False, "code": failure.code}
        return {"allowed": True}

    def probe(self) -> dict[str, Any]:
        """What is told of this computer."""
        return agents.probe(self.pairing.agents)

    def known(self) -> list[dict[str, Any]]:
        """What the server need not offer again."""
        return [{"job": found.job, "attempt": found.attempt} for found in self.journal.delegations()]

    @property
    def at_work(self) -> int:
        return sum(not task.done() for task in self._tasks.values())

    def _start(self, delegation: Delegation) -> None:
        older = self._tasks.get(delegation.job)
        run = Run(delegation, self.pairing, self.places, self.journal)
        self._runs[delegation.job] = run
        task = asyncio.create_task(self._run(run, older), name=f"delegation {delegation.job}")
        self._tasks[delegation.job] = task
        task.add_done_callback(lambda done: self._forget(delegation.job, done))

    async def _run(self, run: Run, older: asyncio.Task[None] | None) -> None:
        """One that goes wrong in a way that nobody foresaw is a failed one, and costs only itself."""
        job = run.delegation.job
        try:
            if older is not None:
                older.cancel()
                await asyncio.gather(older, return_exceptions=True)
            missing = [name for name in _NEEDED if not isinstance(run.delegation.offer.get(name), str)]
            if missing:
                raise ValueError(f"the offer lacks {', '.join(missing)}")
            async with self._room:
                await run.run()
        except asyncio.CancelledError:
            if run.reason:  # before there was room for it
                await to_its_end(job)
                await _end(run, status="cancelled", detail=run.reason)
            raise
        except Exception as error:
            trouble("delegation_failed", job=job, error=type(error).__name__)
            await to_its_end(job)
            await _end(run, status="failed", code="connector_failed", detail=type(error).__name__)

    def _forget(self, job: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(job) is task:
            del self._tasks[job]
            self._runs.pop(job, None)


async def _end(run: Run, **result: Any) -> None:
    """Note and tell the end of one that told none itself; its credential is gone then."""
    await until_written(lambda: run.journal.ended(run.delegation, **result))
    run.credential.forget()
