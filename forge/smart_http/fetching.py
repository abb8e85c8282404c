"""Answering what only reads: the list of refs, and packs. Streamed, so that a clone of any size takes the same memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import structlog
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from base import connections
from forge.conf import forge_settings
from forge.models import Repository
from forge.smart_http.backend import Backend, BadAnswer, Call, Head, Timeout, split_head
from forge.smart_http.bodies import RequestBody

log = structlog.get_logger(__name__)


def answer(
    repository: Repository, call: Call, body: RequestBody, at_end: Callable[[], None] = lambda: None
) -> HttpResponseBase:
    """Git's answer, passed on as it comes. While it is under way no database connection is held. `at_end()` is called when an
    answer that is streamed has been, or will not be."""
    connections.release()
    limits = forge_settings()
    body.bound_waiting(limits.stall_seconds)
    backend = Backend(repository, call, seconds=limits.push_seconds)
    broken: list[Exception] = []

    def broken_off(error: Exception) -> None:
        broken.append(error)
        backend.kill()

    try:
        if call.is_advertisement:
            backend.close_input()
        else:
            backend.feed(body.read, broken_off, body.stop, lambda: body.is_slower_than(limits.stall_seconds))
        head, first = _head(backend)
    except (Timeout, BadAnswer):
        if broken:
            backend.__exit__()
            raise broken[0] from None
        log.warning("git_did_not_answer", repository=str(repository.pk), service=call.service)
        backend.__exit__()
        return HttpResponse("git did not answer\n", status=502, content_type="text/plain")
    except BaseException:
        backend.__exit__()
        raise
    return with_head(StreamingHttpResponse(_Pieces(backend, first, at_end)), head)


def with_head(response: HttpResponseBase, head: Head) -> HttpResponseBase:
    """The response with Git's status and headers."""
    del response["Content-Type"]
    response.status_code = head.status
    for name, value in head.headers:
        response[name] = value
    return response


def _head(backend: Backend) -> tuple[Head, bytes]:
    data = b""
    while (found := split_head(data)) is None:
        piece = backend.read()
        if not piece:
            raise BadAnswer
        data += piece
    return found


class _Pieces:
    """The rest of the output. Closed, at its end or early because the client is gone, it ends Git; also where nobody has begun
    to read it."""

    def __init__(self, backend: Backend, first: bytes, at_end: Callable[[], None]) -> None:
        self._backend, self._first, self._at_end = backend, first, at_end

    def __iter__(self) -> Iterator[bytes]:
        if self._first:
            yield self._first
        while piece := self._backend.read():
            yield piece

    def close(self) -> None:
        try:
            self._backend.__exit__()
        finally:
            self._at_end()
