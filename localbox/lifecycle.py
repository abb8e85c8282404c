"""What a client can ask to happen to a box. Each request is one transaction; the conductor does the rest."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from typing import Any

from . import ids, log, states, uids
from .bodies import DEFAULT_TTL_SECONDS, CreateBody, Omitted, PatchBody, RestartBody, Ttl
from .conductor import Conductor, fail_setup
from .errors import ApiError, bad_request, conflict, not_found
from .settings import Settings
from .store import boxes, deletions, keys, meter, starts
from .store.boxes import BoxRow
from .store.database import Database
from .store.deletions import Deletion


@dataclass(frozen=True)
class IdempotencyKey:
    """What a client sent to make a create or fork safe to repeat."""

    key: str
    mark: str  # fingerprint of the request


class Lifecycle:
    """Create, change, stop, resume, fork, delete. Methods raise ApiError."""

    def __init__(self, database: Database, conductor: Conductor, settings: Settings) -> None:
        self.closing = False  # the server is going down: nothing is started any more
        self._database = database
        self._conductor = conductor
        self._settings = settings
        self._uids = uids.block(settings.state_dir)

    async def create(self, body: CreateBody, key: IdempotencyKey | None) -> BoxRow:
        """A new box in `provisioning`, or the one that this key made before."""

        def insert(rows: sqlite3.Connection, now: float) -> str:
            return self._insert(
                rows,
                now,
                state=states.PROVISIONING,
                size=body.size,
                ttl_seconds=body.ttl_seconds,
                env=body.env,
                no_env=body.no_env,
                setup_script=body.setup_script,
                setup_status="pending" if body.setup_script else None,
            )

        return await self._start_new(key, insert)

    async def fork(self, box_id: str, body: RestartBody, key: IdempotencyKey | None) -> BoxRow:
        """A new box in `cloning`, with the files, size and variables of this one."""

        def insert(rows: sqlite3.Connection, now: float) -> str:
            origin = _existing(rows, box_id)
            if origin.state in states.STARTING:
                raise conflict("box_starting", "The box is still starting.", retry_after=1)
            _refuse_without_files(origin, "fork_failed")
            if origin.saved_at is None and origin.state not in (states.READY, states.ARCHIVING):
                raise conflict("fork_failed", "The box has never been up, so it has no files.")
            ttl = DEFAULT_TTL_SECONDS if isinstance(body.ttl_seconds, Omitted) else body.ttl_seconds
            return self._insert(
                rows,
                now,
                state=states.CLONING,
                size=body.size or origin.size,
                ttl_seconds=ttl,
                env=origin.env if body.env is None else body.env,
                no_env=body.no_env or origin.no_env,
                origin_id=origin.id,
                copied=0,
            )

        return await self._start_new(key, insert)

    async def resume(self, box_id: str, body: RestartBody) -> BoxRow:
        """Start a stopped box with its files. One that is starting or up already is answered as it is."""

        def change(rows: sqlite3.Connection) -> BoxRow:
            row, now = _existing(rows, box_id), time.time()
            if row.state in states.ACTIVE:
                return row
            if row.state == states.ARCHIVING:
                raise conflict("resume_failed", "The box is still being stopped.", retry_after=1)
            self._begin_start(rows, now)
            self._restart(rows, row, body, now)
            return _existing(rows, box_id)

        return self._kicked(await self._database.write(change))

    async def stop(self, box_id: str) -> BoxRow:
        """Stop a box and its meter. Asking again while it is being stopped changes nothing."""

        def change(rows: sqlite3.Connection) -> BoxRow:
            row = _existing(rows, box_id)
            if row.state == states.ARCHIVED:
                raise bad_request("machine_not_running", "The box is stopped already.")
            archive(rows, row, at=time.time())
            return _existing(rows, box_id)

        return self._kicked(await self._database.write(change))

    async def update(self, box_id: str, body: PatchBody) -> BoxRow:
        """Change name, automatic stop or subdomain."""

        def change(rows: sqlite3.Connection) -> BoxRow:
            row, now = _existing(rows, box_id), time.time()
            columns = _changes(row, body, now)
            try:
                boxes.update(rows, row.id, **columns)
            except sqlite3.IntegrityError:
                raise conflict("subdomain_taken", "Another box has this subdomain.") from None
            return _existing(rows, box_id)

        return await self._database.write(change)

    async def delete(self, box_id: str, confirmation: str | None) -> Deletion:
        """Delete a box for good; at once it is gone for every other call. Repeated, the same operation."""

        def change(rows: sqlite3.Connection) -> Deletion:
            earlier, now = deletions.of_box(rows, box_id), time.time()
            if earlier is None:
                _existing(rows, box_id)
            if confirmation != box_id:
                text = "The header X-Ascii-Confirm-Delete must hold the id of the box."
                raise conflict("delete_confirmation_required", text)
            if earlier is not None:
                return earlier
            meter.stop(rows, box_id, at=now)
            boxes.update(rows, box_id, deleted_at=now, removed_at=None)
            return deletions.insert(rows, box_id, now)

        operation = await self._database.write(change)
        self._conductor.kick(box_id)
        return operation

    async def archive_all(self) -> None:
        """Stop every box that is up and wait until nothing of any is left. Nothing can be started from here on."""
        self.closing = True

        def change(rows: sqlite3.Connection) -> list[str]:
            active, now = boxes.in_states(rows, states.ACTIVE), time.time()
            for row in active:
                archive(rows, row, at=now)
            return [row.id for row in active]

        for box_id in await self._database.write(change):
            self._conductor.kick(box_id)
        await self._conductor.settled()

    async def _start_new(self, key: IdempotencyKey | None, insert: Any) -> BoxRow:
        """Replay or make a box. Key, quota and row are one transaction: a key is never without its box."""

        def change(rows: sqlite3.Connection) -> BoxRow:
            now = time.time()
            earlier = keys.replayed(rows, key.key, key.mark, now) if key else None
            if earlier is not None:
                return earlier
            self._begin_start(rows, now)
            box_id = insert(rows, now)
            if key:
                keys.remember(rows, key.key, key.mark, box_id, now)
            return _existing(rows, box_id)

        return self._kicked(await self._database.write(change))

    def _begin_start(self, rows: sqlite3.Connection, now: float) -> None:
        if self.closing:
            raise ApiError(503, "shutting_down", "The server is going down.", retry_after=5)
        starts.take(rows, self._settings, now)

    def _insert(
        self,
        rows: sqlite3.Connection,
        now: float,
        *,
        env: dict[str, str],
        ttl_seconds: int | None,
        **columns: Any,
    ) -> str:
        box_id = ids.box_id()
        boxes.insert(
            rows,
            id=box_id,
            name=_default_name(now),
            env=boxes.env_text(env),
            ttl_seconds=ttl_seconds,
            archive_after=None if ttl_seconds is None else now + ttl_seconds,
            uid=uids.pick(self._uids, boxes.uids_taken(rows)),
            created_at=now,
            updated_at=now,
            **columns,
        )
        log.info("box_accepted", box=box_id, state=columns["state"])
        return box_id

    def _restart(self, rows: sqlite3.Connection, row: BoxRow, body: RestartBody, now: float) -> None:
        ttl = row.ttl_seconds if isinstance(body.ttl_seconds, Omitted) else body.ttl_seconds
        _refuse_without_files(row, "resume_failed")
        boxes.move(
            rows,
            row.id,
            states.PROVISIONING if row.copied else states.CLONING,
            now=now,
            size=body.size or row.size,
            ttl_seconds=ttl,
            archive_after=None if ttl is None else now + ttl,
            env=boxes.env_text(row.env if body.env is None else body.env),
            no_env=body.no_env or row.no_env,
            error=None,
        )

    def _kicked(self, row: BoxRow) -> BoxRow:
        self._conductor.kick(row.id)
        return row


def archive(rows: sqlite3.Connection, row: BoxRow, *, at: float) -> bool:
    """Begin the end of a box: its meter stops at `at`, and the conductor ends its processes. False if it was
    not up."""
    if not boxes.move(rows, row.id, states.ARCHIVING, now=time.time(), archive_after=None):
        return False
    meter.stop(rows, row.id, at=at)
    fail_setup(rows, row, "The box was stopped before it ended.")
    return True


def existing(database: Database, box_id: str) -> BoxRow:
    """The box, for reading. Raises ApiError 404."""
    return _existing(database.reader, box_id)


def _existing(rows: sqlite3.Connection, box_id: str) -> BoxRow:
    row = boxes.get(rows, box_id) if ids.BOX_ID.fullmatch(box_id) else None
    if row is None:
        raise not_found("box")
    return row


def _refuse_without_files(row: BoxRow, code: str) -> None:
    if row.pruned_at is not None:
        raise conflict(code, "The files of this box were deleted after it had been stopped for long.")


def _changes(row: BoxRow, body: PatchBody, now: float) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if body.name is not None:
        columns["name"] = body.name
    if body.subdomain is not None:
        columns["subdomain"] = body.subdomain
    if not isinstance(body.ttl_seconds, Omitted):
        columns |= _new_ttl(row, body.ttl_seconds, now)
    return columns


def _new_ttl(row: BoxRow, ttl: Ttl, now: float) -> dict[str, Any]:
    seconds = None if isinstance(ttl, Omitted) else ttl
    up = row.state in states.ACTIVE
    return {"ttl_seconds": seconds, "archive_after": now + seconds if seconds is not None and up else None}


def _default_name(now: float) -> str:
    return time.strftime("Box %Y-%m-%d %H:%M:%S", time.gmtime(now))
