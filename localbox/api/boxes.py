"""Boxes: list, create, read, change, stop, resume, fork, delete, usage, events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .. import bodies, states, views
from ..errors import bad_request, not_found
from ..ids import DELETION_ID
from ..lifecycle import IdempotencyKey
from ..store import boxes, deletions, keys, meter
from ..store.boxes import BoxRow
from ..times import parse_instant
from ..usage import usage as count_usage
from . import cursors
from .calls import Answer, choice, whole_number
from .handlers import Call, Endpoint

MAXIMUM_PAGE = 200
DEFAULT_PAGE = 100


async def list_boxes(call: Call) -> Answer:
    limit = whole_number(call.request, "limit", DEFAULT_PAGE, low=1, high=MAXIMUM_PAGE)
    found = boxes.page(
        call.provider.database.reader,
        wanted=_wanted_states(call.request.query_params.get("state")),
        after=cursors.read(call.request.query_params.get("cursor")),
        ascending=choice(call.request, "sort", ("desc", "asc")) == "asc",
        limit=limit + 1,
    )
    page, more = found[:limit], len(found) > limit
    page_info = {"nextCursor": cursors.write(page[-1].seq) if more else None, "hasMore": more, "limit": limit}
    listed = [views.box(row) for row in page]
    return Answer(200, "box.list", {call.dialect.collection: listed, "pageInfo": page_info})


async def create(call: Call) -> Answer:
    sent = await call.body()
    body = bodies.create(sent)
    row = await call.provider.lifecycle.create(body, _key(call, "create", sent))
    fields = {"status": "provisioning", "ttlSeconds": row.ttl_seconds, call.dialect.noun: views.box(row)}
    return Answer(202, "box.created", fields)


async def read(call: Call) -> Answer:
    return _info(call, call.box())


async def change(call: Call) -> Answer:
    return _info(call, await call.provider.lifecycle.update(call.box_id, bodies.patch(await call.body())))


async def stop(call: Call) -> Answer:
    bodies.force(await call.body())  # checked; a stop here always keeps the files and never needs forcing
    row = await call.provider.lifecycle.stop(call.box_id)
    return _action(call, row, "box.stopping", "archiving")


async def resume(call: Call) -> Answer:
    row = await call.provider.lifecycle.resume(call.box_id, bodies.restart(await call.body()))
    return _action(call, row, "box.resuming", "resuming")


async def fork(call: Call) -> Answer:
    sent = await call.body()
    body = bodies.restart(sent)
    row = await call.provider.lifecycle.fork(call.box_id, body, _key(call, f"fork {call.box_id}", sent))
    return _action(call, row, "box.forking", "forking")


async def delete(call: Call) -> Answer:
    confirmation = call.request.headers.get("x-ascii-confirm-delete")
    operation = await call.provider.lifecycle.delete(call.box_id, confirmation)
    return Answer(202, "box.deleting", {"operation": views.deletion(operation)})


async def read_deletion(call: Call) -> Answer:
    deletion_id = str(call.request.path_params["deletion_id"])
    known = DELETION_ID.fullmatch(deletion_id)
    operation = deletions.get(call.provider.database.reader, deletion_id) if known else None
    if operation is None:
        raise not_found("deletion operation")
    return Answer(200, "deletion.operation", {"operation": views.deletion(operation)})


async def usage(call: Call) -> Answer:
    row, now = call.box(), time.time()
    since, until = _instant(call, "since", row.created_at), _instant(call, "until", now)
    if since > until:
        raise bad_request("invalid_window", "since lies after until.")
    stretches = meter.stretches(call.provider.database.reader, row.id)
    used = count_usage(stretches, since=since, until=until, now=now)
    return Answer(200, "box.usage", views.usage(row, used, call.dialect))


async def events(call: Call) -> Answer:
    """The conversation with a box's own agent. There is none here, so the list is empty, and correct."""
    row = call.box()
    limit = whole_number(call.request, "limit", DEFAULT_PAGE, low=1, high=MAXIMUM_PAGE)
    choice(call.request, "sort", ("desc", "asc"))
    cursors.check_event_cursor(call.request.query_params.get("cursor"))
    page_info = {"nextCursor": None, "hasMore": False, "limit": limit}
    return Answer(200, "events.list", {"id": row.id, "events": [], "pageInfo": page_info})


def _info(call: Call, row: BoxRow) -> Answer:
    return Answer(200, "box.info", {call.dialect.noun: views.box(row)})


def _action(call: Call, row: BoxRow, kind: str, status: str) -> Answer:
    return Answer(202, kind, {"id": row.id, "status": status, call.dialect.noun: views.box(row)})


def _key(call: Call, operation: str, body: Mapping[str, Any]) -> IdempotencyKey | None:
    key = call.request.headers.get("idempotency-key")
    if not key:
        return None
    if len(key) > keys.MAXIMUM_LENGTH:
        text = f"Idempotency-Key may have at most {keys.MAXIMUM_LENGTH} characters."
        raise bad_request("invalid_idempotency_key", text)
    return IdempotencyKey(key, keys.fingerprint(operation, body))


def _wanted_states(text: str | None) -> list[str]:
    wanted = [state.strip() for state in (text or "").split(",") if state.strip()]
    for state in wanted:
        if state not in states.KNOWN:
            raise bad_request("invalid_state", f"{state[:40]!r} is not a state of a box.")
    return wanted


def _instant(call: Call, name: str, default: float) -> float:
    text = call.request.query_params.get(name)
    if not text:
        return default
    try:
        return parse_instant(text)
    except ValueError:
        raise bad_request(f"invalid_{name}", f"{name} must be an ISO 8601 time or epoch seconds.") from None


ENDPOINTS = (
    Endpoint("GET", "/{boxes}", list_boxes),
    Endpoint("POST", "/{boxes}", create),
    Endpoint("GET", "/{boxes}/{box_id}", read),
    Endpoint("PATCH", "/{boxes}/{box_id}", change),
    Endpoint("DELETE", "/{boxes}/{box_id}", delete),
    Endpoint("POST", "/{boxes}/{box_id}/stop", stop),
    Endpoint("POST", "/{boxes}/{box_id}/resume", resume),
    Endpoint("POST", "/{boxes}/{box_id}/fork", fork),
    Endpoint("GET", "/{boxes}/{box_id}/usage", usage),
    Endpoint("GET", "/{boxes}/{box_id}/events", events),
    Endpoint("GET", "/deletion-operations/{deletion_id}", read_deletion),
)
