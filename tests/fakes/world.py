"""What exists at the fake provider: boxes with a life of their own, a meter, and idempotency keys. No network."""

from __future__ import annotations

import heapq
import itertools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
DOWN = frozenset({"init", "provisioning", "archiving", "archived", "error", "cancelled", "deleted"})
"""States that cost nothing. Every other one is billed, also a state that nobody knows."""

TAKES_COMMANDS = frozenset({"ready", "idle", "running"})
SECONDS_PER_DOLLAR = 100_000
KEY_LIFETIME = timedelta(hours=24)


class Clock:
    """The provider's own clock: real time plus an offset, that a test moves or freezes."""

    def __init__(self) -> None:
        self.offset = timedelta(0)
        self._frozen: datetime | None = None

    def now(self) -> datetime:
        return (self._frozen or datetime.now(UTC)) + self.offset

    def advance(self, seconds: float) -> None:
        self.offset += timedelta(seconds=seconds)

    def freeze(self) -> None:
        self._frozen = datetime.now(UTC)


@dataclass
class FakeBox:
    """One box. A test may change any field at any time; setting `state` also starts or stops the meter.

    `refuse_stop` is a code with which stops are refused. `undo_stop_after` lets an accepted stop come undone after
    so many seconds: archiving goes back to idle. `extra` is laid over the box's JSON, `fields` None leaves one out.
    """

    id: str
    sequence: int
    clock: Clock
    created_at: datetime
    name: str | None
    ttl_seconds: int | None = 3600
    archive_after: datetime | None = None
    type: str = "default"
    setup_status: str | None = None
    setup_error: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    refuse_stop: str | None = None
    undo_stop_after: float | None = None
    stop_takes: float = 0.0
    stops: int = 0
    deleted: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    _state: str = "provisioning"
    _metered: timedelta = timedelta(0)
    _meter_from: datetime | None = None

    @property
    def state(self) -> str:
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        was, now = self.is_billing, self.clock.now()
        self._state = state
        if self.is_billing and not was:
            self._meter_from = now
        if was and not self.is_billing and self._meter_from is not None:
            self._metered += now - self._meter_from
            self._meter_from = None

    @property
    def is_billing(self) -> bool:
        return not self.deleted and self._state not in DOWN

    @property
    def billed_seconds(self) -> int:
        running = self.clock.now() - self._meter_from if self._meter_from is not None else timedelta(0)
        return int((self._metered + running).total_seconds())

    @property
    def cost_microusd(self) -> int:
        return self.billed_seconds * 1_000_000 // SECONDS_PER_DOLLAR

    def document(self) -> dict[str, Any]:
        """The box as the API shows it."""
        shown: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "state": self._state,
            "type": self.type,
            "vcpu": 4,
            "memoryGB": 8,
            "billingMultiplier": 1,
            "url": None,
            "ip": None,
            "subdomain": None,
            "createdAt": stamp(self.created_at),
            "updatedAt": stamp(self.created_at),
            "archiveAfter": stamp(self.archive_after),
            "desktopAvailable": False,
            "desktopUrl": None,
            "snapshotAvailable": False,
            "snapshotCompletedAt": None,
            "setupStatus": self.setup_status,
            "setupError": self.setup_error,
            "environment": None,
            **self.extra,
        }
        return {name: value for name, value in shown.items() if value is not OMITTED}


OMITTED = object()
"""In `FakeBox.extra`: leave the field out of the JSON."""


class Refusal(Exception):
    """An answer other than success."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message or code.replace("_", " ")


class World:
    """All boxes, and what happens to them by themselves. Every method may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.boxes: dict[str, FakeBox] = {}
        self.lock = threading.RLock()
        self.start_takes = 0.0
        self.made_by_key: dict[str, list[str]] = {}
        self._keys: dict[str, tuple[str, str, datetime]] = {}
        self._sequence = itertools.count(1)
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._ticket = itertools.count()

    def add(
        self, box_id: str | None = None, *, state: str = "ready", age: float = 0.0, **fields: Any
    ) -> FakeBox:
        """Put a box into the world; `age` is how long ago it was made, in seconds, and it has been billed since."""
        with self.lock:
            sequence = next(self._sequence)
            box_id = box_id or vendor_id(sequence)
            created_at = self.clock.now() - timedelta(seconds=age)
            name = fields.pop("name", f"Box {sequence}")
            box = FakeBox(box_id, sequence, self.clock, created_at, name, **fields)
            box.state = state
            if box._meter_from is not None:
                box._meter_from = created_at
            self.boxes[box_id] = box
            self._arrange_archiving(box)
            return box

    def create(self, body: Mapping[str, Any], key: str | None) -> FakeBox:
        """A new box, or the one that was made with this key and this body. Raises Refusal for another body."""
        text = json.dumps(body, sort_keys=True)
        with self.lock:
            known = self._keys.get(key or "")
            if key and known and known[2] > self.clock.now() - KEY_LIFETIME:
                if known[0] != text:
                    raise Refusal(409, "idempotency_key_reused")
                if known[1] in self.boxes:
                    return self.boxes[known[1]]
            box = self._made(body, key)
            if key:
                self._keys[key] = (text, box.id, self.clock.now())
                self.made_by_key.setdefault(key, []).append(box.id)
            return box

    def find(self, box_id: str) -> FakeBox:
        with self.lock:
            self.settle()
            box = self.boxes.get(box_id)
            if box is None or box.deleted:
                raise Refusal(404, "not_found")
            return box

    def stop(self, box: FakeBox) -> None:
        with self.lock:
            box.stops += 1
            if box.refuse_stop:
                raise Refusal(403 if box.refuse_stop == "forbidden" else 400, box.refuse_stop)
            if box.state == "archived":
                raise Refusal(400, "machine_not_running")
            if box.state == "archiving":
                return
            box.state = "archiving"
            if box.undo_stop_after is not None:
                self._at(box.undo_stop_after, lambda: self._move(box, "archiving", "idle"))
            else:
                self._at(box.stop_takes, lambda: self._move(box, "archiving", "archived"))

    def set_ttl(self, box: FakeBox, ttl_seconds: int | None) -> None:
        with self.lock:
            box.ttl_seconds = ttl_seconds
            box.archive_after = (
                self.clock.now() + timedelta(seconds=ttl_seconds) if ttl_seconds is not None else None
            )
            self._arrange_archiving(box)

    def delete(self, box: FakeBox) -> None:
        with self.lock:
            box.state = "deleted"
            box.deleted = True

    def existing(self) -> list[FakeBox]:
        """What is not deleted, in order of creation."""
        with self.lock:
            self.settle()
            return [box for box in self.boxes.values() if not box.deleted]

    def settle(self) -> None:
        """Let everything happen that was due by now."""
        with self.lock:
            while self._due and self._due[0][0] <= self.clock.now():
                heapq.heappop(self._due)[2]()

    def _made(self, body: Mapping[str, Any], key: str | None) -> FakeBox:
        box = self.add(state="provisioning", idempotency_key=key, env=body.get("env") or {})
        box.setup_status = "pending" if body.get("setupScript") else None
        self.set_ttl(box, body.get("ttlSeconds", 3600))
        self._at(self.start_takes, lambda: self._started(box))
        return box

    def _started(self, box: FakeBox) -> None:
        self._move(box, "provisioning", "ready")
        box.setup_status = "done" if box.setup_status == "pending" else box.setup_status

    def _arrange_archiving(self, box: FakeBox) -> None:
        wanted = box.archive_after
        if wanted is not None:
            self._at((wanted - self.clock.now()).total_seconds(), lambda: self._time_is_up(box, wanted))

    def _time_is_up(self, box: FakeBox, wanted: datetime) -> None:
        if box.archive_after == wanted and box.state not in DOWN:
            box.state, box.archive_after = "archived", None

    def _move(self, box: FakeBox, old: str, new: str) -> None:
        if box.state == old and not box.deleted:
            box.state = new

    def _at(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.clock.now() + timedelta(seconds=seconds), next(self._ticket), happen))


def vendor_id(number: int) -> str:
    """An id of the vendor's form."""
    letters = []
    for _ in range(8):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "bx_" + "".join(reversed(letters))


def stamp(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment is not None else None
