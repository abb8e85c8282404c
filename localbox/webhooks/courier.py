"""The loop that empties the queue of deliveries."""

from __future__ import annotations

import asyncio
import contextlib
import time

import h11

from .. import log
from ..settings import Settings
from ..store import deliveries, webhooks
from ..store.database import Database
from ..store.deliveries import MAXIMUM_ATTEMPTS, Delivery
from .post import Headers, post
from .signing import signature
from .targets import RefusedTargetError, parse

LONGEST_BACKOFF_SECONDS = 7_200
FAILED_PASS_SECONDS = 5.0
AT_ONCE = 4  # requests under way per webhook


class Courier:
    """Sends what is due, each delivery at most MAXIMUM_ATTEMPTS times, and waits for `wake` or the next due time."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._wake = asyncio.Event()
        self._under_way: dict[int, str] = {}  # delivery -> webhook
        self._tasks: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            try:
                pause = self.run_once(time.time())
            except Exception:
                log.exception("courier_pass_failed")
                pause = FAILED_PASS_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def run_once(self, now: float) -> float | None:
        """Start every delivery that is due and has room; returns seconds until the next is, None if none is known.

        What waits only for room needs no time: the end of a delivery wakes the loop.
        """
        next_at: float | None = None
        for webhook in webhooks.every(self._database.reader):
            room = AT_ONCE - sum(busy == webhook.id for busy in self._under_way.values())
            for delivery in self._waiting(webhook.id, room):
                if delivery.next_at <= now:
                    self._begin(delivery)
                else:
                    next_at = min(next_at or delivery.next_at, delivery.next_at)
        return None if next_at is None else next_at - now

    def _waiting(self, webhook_id: str, room: int) -> list[Delivery]:
        """Each webhook has its own queue: one that never answers cannot hold up the others."""
        under_way = [seq for seq, busy in self._under_way.items() if busy == webhook_id]
        return deliveries.waiting(self._database.reader, webhook_id, besides=under_way, limit=room)

    def _begin(self, delivery: Delivery) -> None:
        self._under_way[delivery.seq] = delivery.webhook_id
        task = asyncio.create_task(self._deliver(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            await self._attempt(delivery)
        except Exception:
            log.exception("webhook_delivery_crashed", delivery=delivery.event_id)
        finally:
            del self._under_way[delivery.seq]
            self.wake()

    async def _attempt(self, delivery: Delivery) -> None:
        again_at = time.time() + self._backoff(delivery.attempts + 1)
        claimed = await self._database.write(
            lambda rows: deliveries.claim(rows, delivery.seq, again_at=again_at)
        )
        webhook = claimed and webhooks.get(self._database.reader, claimed.webhook_id)
        if claimed is None or not webhook:
            return
        failure = await self._send(webhook, claimed)
        if failure is None or claimed.attempts >= MAXIMUM_ATTEMPTS:
            await self._database.write(lambda rows: deliveries.done(rows, claimed.seq))
        _report(webhook, claimed, failure)

    def _backoff(self, attempt: int) -> float:
        return min(LONGEST_BACKOFF_SECONDS, self._settings.webhook_backoff_seconds * 4.0 ** (attempt - 1))

    async def _send(self, webhook: webhooks.Webhook, delivery: Delivery) -> str | None:
        """Make the request; returns why it failed, or None."""
        body = delivery.body.encode()
        loopback = self._settings.loopback_webhooks
        try:
            target = parse(webhook.url, loopback=loopback)
            status = await post(target, _headers(webhook, delivery, body), body, loopback=loopback)
        except TimeoutError:
            return "no answer within 5 seconds"
        except (OSError, RefusedTargetError, h11.ProtocolError) as error:
            return str(error) or type(error).__name__
        return None if 200 <= status < 300 else f"status {status}"


def _headers(webhook: webhooks.Webhook, delivery: Delivery, body: bytes) -> Headers:
    timestamp = str(int(time.time()))
    signed = signature(webhook.secret, delivery_id=delivery.event_id, timestamp=timestamp, body=body)
    return [
        ("Content-Type", "application/json"),
        ("User-Agent", "localbox"),
        ("X-Ascii-Event", delivery.event),
        ("X-Ascii-Delivery", delivery.event_id),
        ("X-Ascii-Timestamp", timestamp),
        ("X-Ascii-Signature", signed),
        ("X-Ascii-Attempt", str(delivery.attempts)),
    ]


def _report(webhook: webhooks.Webhook, delivery: Delivery, failure: str | None) -> None:
    fields = {"webhook": webhook.id, "delivery": delivery.event_id, "attempt": delivery.attempts}
    if failure is None:
        log.info("webhook_delivered", **fields)
    elif delivery.attempts < MAXIMUM_ATTEMPTS:
        log.info("webhook_delivery_failed", reason=failure, **fields)
    else:
        log.warning("webhook_delivery_given_up", reason=failure, **fields)
