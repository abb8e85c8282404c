"""Files of a box: read as text, base64 or raw bytes; write."""

from __future__ import annotations

import asyncio
import base64

from starlette.responses import Response

from .. import bodies
from ..errors import bad_request
from .calls import Answer
from .faults import translated
from .handlers import Call, Endpoint


async def read(call: Call) -> Answer:
    encoding = bodies.encoding(call.request.query_params.get("encoding"))
    path, content = await _content(call)
    if len(content) > call.provider.settings.max_body_bytes:
        raise bad_request(
            "file_too_large", "The file is too large to be read as JSON; fetch it as an artifact."
        )
    fields = {"success": True, "path": path, "encoding": encoding, "size": len(content)}
    return Answer(
        200, "file.read", fields | {"content": await asyncio.to_thread(_encoded, content, encoding)}
    )


async def artifact(call: Call) -> Response:
    _, content = await _content(call)
    return Response(content, media_type="application/octet-stream")


async def write(call: Call) -> Answer:
    handle = call.handle()
    sent = await call.body(maximum=call.provider.settings.max_body_bytes)
    body = await asyncio.to_thread(bodies.file, sent)
    with translated("folder"):
        path = await handle.write_file(body.path, body.content)
    fields = {"success": True, "path": path, "encoding": body.encoding, "size": len(body.content)}
    return Answer(200, "file.written", fields)


async def _content(call: Call) -> tuple[str, bytes]:
    asked = bodies.path(call.request.query_params.get("path"))
    handle = call.handle()
    with translated("file"):
        return await handle.read_file(asked)


def _encoded(content: bytes, encoding: str) -> str:
    if encoding == "base64":
        return base64.b64encode(content).decode()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise bad_request(
            "invalid_encoding", "The file is not UTF-8 text; ask for encoding=base64."
        ) from None


ENDPOINTS = (
    Endpoint("GET", "/{boxes}/{box_id}/files", read),
    Endpoint("PUT", "/{boxes}/{box_id}/files", write),
    Endpoint("GET", "/{boxes}/{box_id}/artifacts", artifact),
)
