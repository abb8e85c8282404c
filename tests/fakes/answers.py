"""From what the API says, or a fault instead of it, to bytes on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.faults import Fault
from tests.fakes.routes import Dialect, error_body
from tests.fakes.wire import Connection, payload

HTML = b"<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>"


def rendered(
    status: int, document: Any, fault: Fault, headers: Mapping[str, str], dialect: Dialect
) -> tuple[int, bytes]:
    """Status and bytes of the whole answer, before anything goes wrong on its way."""
    sent = {**headers, **fault.headers}
    if fault.retry_after is not None:
        sent["Retry-After"] = str(fault.retry_after)
    if fault.answers_itself:
        status, body = _own_answer(fault, sent, dialect.translated)
    else:
        body = json.dumps(_edited(document, fault)).encode()
    if fault.cut_json is not None:
        body = body[: int(len(body) * fault.cut_json)]
    return status, payload(status, body, sent)


def _own_answer(fault: Fault, headers: dict[str, str], translated: Callable[[Any], Any]) -> tuple[int, bytes]:
    status = fault.status or (302 if fault.redirect else 400 if fault.code else 200)
    if fault.redirect is not None:
        headers["Location"] = fault.redirect
    if fault.html:
        headers["Content-Type"] = "text/html"
        return status, HTML
    if fault.huge is not None:
        return status, b'{"padding": "' + b"x" * fault.huge + b'"}'
    if fault.body is not None:
        return status, fault.body.encode() if isinstance(fault.body, str) else fault.body
    if fault.json is not None:
        return status, json.dumps(fault.json).encode()
    if fault.code is not None:
        return status, json.dumps(translated(error_body(status, fault.code))).encode()
    return status, b"" if fault.empty or fault.redirect is not None else b"{}"


def _edited(document: Any, fault: Fault) -> Any:
    if fault.cursor is not None and isinstance(document, dict):
        document = {**document, "pageInfo": {"nextCursor": fault.cursor, "hasMore": True, "limit": 200}}
    return fault.edit(document) if fault.edit is not None else document


def deliver(connection: Connection, raw: bytes, fault: Fault) -> None:
    head, _, body = raw.partition(b"\r\n\r\n")
    head += b"\r\n\r\n"
    if fault.half is not None:
        connection.write(head + body[: int(len(body) * fault.half)])
        connection.close(reset=fault.reset)
    elif fault.drip is not None:
        if fault.drip_head:
            connection.drip(raw, fault.drip)
        else:
            connection.write(head)
            connection.drip(body, fault.drip)
    else:
        connection.write(raw * (2 if fault.answer_twice else 1))
