"""Keeping the channel: connected again after every break, heard in order, told until it is heard."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from typing import Any

from connector.delegating import Delegations
from connector.errors import Refused, Unreachable
from connector.journal import Journal, Told
from connector.logs import event, trouble
from connector.server import Server

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
GOODBYE_SECONDS = 5.0
_NOT_UNDERSTOOD = (KeyError, TypeError, ValueError, AttributeError)
"""What reading an answer ends with that is not of this protocol."""


class Channel:
    """The one channel of this computer."""

    def __init__(self, server: Server, journal: Journal, delegations: Delegations) -> None:
        self.server, self.journal, self.delegations = server, journal, delegations
        self.epoch = 0
        self._news = asyncio.Event()
        journal.on_tell = self._news.set

    async def keep(self) -> None:
        """Keep connected for ever. Raises NotLetIn and Superseded, after which nothing helps but the owner."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._connect()
                pause = FIRST_PAUSE
                await self._both_ways()
            except Unreachable as error:
                wait = error.seconds if error.seconds is not None else pause * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
                trouble("not_connected", reason=error, again_in=f"{wait:.1f}s")
            except Refused as error:
                wait = LONGEST_PAUSE if error.code != "frame_gap" else FIRST_PAUSE
                trouble("refused", code=error.code, again_in=f"{wait:.1f}s")
            except (OSError, sqlite3.Error) as error:
                wait = LONGEST_PAUSE
                trouble("not_written", error=type(error).__name__, again_in=f"{wait:.1f}s")
            except _NOT_UNDERSTOOD as error:
                wait = LONGEST_PAUSE
                trouble("not_understood", error=type(error).__name__, again_in=f"{wait:.1f}s")
            await asyncio.sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def say_goodbye(self) -> None:
        """Tell that this computer goes away now, if that can be told."""
        if self.epoch:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._tell_all()
                    await self.server.disconnect(self.epoch)

    async def _connect(self) -> None:
        answer = await self.server.connect(
            {
                "heard": self.journal.heard,
                "oldest": self.journal.oldest,
                "delegations": self.delegations.known(),
                "probe": self.delegations.probe(),
            }
        )
        self.epoch = int(answer["epoch"])
        self.journal.agree(int(answer["received"]))
        self._news.set()
        event("connected", epoch=self.epoch, to_tell=self.journal.waiting())

    async def _both_ways(self) -> None:
        """Hear and tell until one of them breaks."""
        tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._tell())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hear(self) -> None:
        while True:
            for frame in await self.server.poll(self.epoch, self.journal.heard):
                self._take(frame)

    def _take(self, frame: dict[str, Any]) -> None:
        """Take one frame: what it changes and that it was heard are one change."""
        seq, kind, body = int(frame["seq"]), str(frame["kind"]), frame.get("body") or {}
        if seq <= self.journal.heard:
            return
        with self.journal.change():
            self.journal.note("heard", seq)
            if kind == "offer":
                self._take_offer(seq, body)
            elif kind == "check":
                self.journal.tell("answer", request=body.get("request"), answer=self.delegations.judge(body))
            elif kind == "probe":
                self.journal.tell("answer", request=body.get("request"), answer=self.delegations.probe())
        if kind == "offer":
            self.delegations.start(str(body.get("job")))
        elif kind == "cancel":
            self.delegations.cancel(str(body.get("job")), str(body.get("reason"))[:100])

    def _take_offer(self, seq: int, body: Any) -> None:
        """One that is none is passed over: it would come again and again, and nothing after it."""
        try:
            self.delegations.take(body)
        except _NOT_UNDERSTOOD as error:
            trouble("frame_not_understood", seq=seq, kind="offer", error=type(error).__name__)

    async def _tell(self) -> None:
        while True:
            self._news.clear()
            await self._tell_all()
            await self._news.wait()

    async def _tell_all(self) -> None:
        while told := self.journal.outbox():
            try:
                answer = await self.server.tell(self.epoch, told)
            except Refused as error:
                if error.code not in {"frame_too_large", "invalid_frame"}:
                    raise
                answer = await self._tell_one(told[0])
            if int(answer["received"]) < told[0].seq and not answer.get("dropped"):
                raise Unreachable("it does not take what it is told")
            for refused in answer.get("refused") or []:
                trouble("frame_refused", seq=refused.get("seq"), code=refused.get("code"))
            self.journal.told(int(answer["received"]))

    async def _tell_one(self, told: Told) -> dict[str, Any]:
        """Tell one frame by itself; one that the server will never take must not keep back all that follow."""
        try:
            return await self.server.tell(self.epoch, [told])
        except Refused as error:
            trouble("frame_dropped", seq=told.seq, kind=told.kind, code=error.code)
            self.journal.dropped(told)
            return {"received": told.seq - 1, "dropped": True}
