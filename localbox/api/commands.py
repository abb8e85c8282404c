"""Commands in a box: run to their end, or started and asked about later."""

from __future__ import annotations

import re

from .. import bodies, views
from ..errors import not_found
from .calls import Answer, whole_number
from .faults import translated
from .handlers import Call, Endpoint

MAXIMUM_TAIL_BYTES = 524_288

_PROCESS_ID = re.compile(r"[1-9]\d{0,14}")


async def run(call: Call) -> Answer:
    body = bodies.command(await call.body())
    handle = call.handle()
    with translated("process"):
        if body.detached:
            started = await handle.start_detached(body.command, cwd=body.cwd)
            return Answer(200, "command.started", views.command_started(started, body.command))
        result = await handle.run(body.command, cwd=body.cwd, timeout_seconds=body.timeout_seconds)
        return Answer(200, "command.finished", views.command_finished(result))


async def status(call: Call) -> Answer:
    tail = whole_number(call.request, "tailBytes", MAXIMUM_TAIL_BYTES, low=1, high=MAXIMUM_TAIL_BYTES)
    handle = call.handle()
    process_id = str(call.request.path_params["process_id"])
    if not _PROCESS_ID.fullmatch(process_id):
        raise not_found("process")
    with translated("process"):
        found = await handle.detached_status(int(process_id), tail_bytes=tail)
        return Answer(200, "command.status", views.command_status(found))


ENDPOINTS = (
    Endpoint("POST", "/{boxes}/{box_id}/commands", run),
    Endpoint("GET", "/{boxes}/{box_id}/commands/{process_id}", status),
)
