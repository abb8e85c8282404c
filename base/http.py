"""HTTP calls to the outside that always come back: one total deadline, a bounded body, and typed failures.

`call` makes one request and returns what was answered, whatever its status. It follows no redirect, repeats nothing,
keeps no cookies, reads no proxy or `.netrc` settings, and never writes a header or a body to a log.

Any number of threads may call at once. They share one pool of connections, so that a thread that is used for the first
time finds one that is open.
"""

from __future__ import annotations

import json as json_module
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests
import requests.exceptions
import urllib3.exceptions

from base.http_transport import LimitedAdapter, limited_to, tls_context

MAXIMUM_BODY_BYTES = 8 << 20
"""Default bound of a response body after decoding. A page of 200 boxes has about 0.2 MB."""

POOL_SIZE = 64
"""Idle connections that are kept for each host; beyond that they are closed after use."""

CHUNK_BYTES = 64 << 10


# It warns of each connection that is closed because enough are idle.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)


class CallFailed(Exception):
    """No whole answer came back. Whether the other side acted on the request is not known.

    `reason` is the name of the underlying error and nothing else, so it is safe to log.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class TransportFailure(CallFailed):
    """The connection could not be made, broke, or carried something that is not HTTP."""


class DeadlineExceeded(CallFailed):
    """The whole answer was not there when the time of the call was used up."""


class BodyTooLarge(CallFailed):
    """The body is larger than the caller accepts; reading it was ended. `status` is the HTTP status."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. Header names compare without regard to case; the body is decoded from its content encoding."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_ms: int


def call(
    method: str,
    url: str,
    *,
    deadline_seconds: float,
    headers: Mapping[str, str] | None = None,
    params: Mapping[str, str] | None = None,
    json: Any = None,
    body: bytes | None = None,
    maximum_body_bytes: int = MAXIMUM_BODY_BYTES,
    permitted: Callable[[str], bool] | None = None,
) -> Reply:
    """Make one request and read its whole answer within `deadline_seconds`, counted from now.

    `json` is sent with sorted keys and without spaces, so equal values are equal bytes. With `permitted` the call has a
    connection of its own, which goes only to addresses for which it is true. Raises TransportFailure, DeadlineExceeded or
    BodyTooLarge; after any of them the request may or may not have been acted upon.
    """
    started = time.monotonic()
    deadline = started + deadline_seconds
    if deadline_seconds <= 0:
        raise DeadlineExceeded("no time was given")
    try:
        request = _prepared(method, url, headers, params, json, body)
        with limited_to(deadline, permitted), _adapter_for(permitted) as adapter:
            return _answer(adapter, request, started, deadline_seconds, maximum_body_bytes)
    except _FAILURES as error:
        raise _typed(error, deadline) from error


def close_connections() -> None:
    """Close the idle connections of this process."""
    global _adapter
    with _lock:
        adapter, _adapter = _adapter, None
    if adapter is not None:
        adapter.close()


_FAILURES = (
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
    UnicodeError,
)


def _prepared(
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    params: Mapping[str, str] | None,
    json: Any,
    body: bytes | None,
) -> requests.PreparedRequest:
    sent = {"Accept": "application/json", **(headers or {})}
    if json is not None:
        body = json_module.dumps(json, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        sent["Content-Type"] = "application/json"
    request = requests.PreparedRequest()
    request.prepare(method=method, url=url, headers=sent, params=params, data=body)
    return request


def _answer(
    adapter: LimitedAdapter, request: requests.PreparedRequest, started: float, seconds: float, maximum: int
) -> Reply:
    # The adapter is called without a session: Session.send would read a redirect's whole body to prepare the next
    # request, and would keep cookies.
    response = adapter.send(request, stream=True, timeout=seconds, verify=True, proxies={})
    try:
        body = _read(response, maximum)
    finally:
        response.close()
    elapsed_ms = round((time.monotonic() - started) * 1000)
    return Reply(response.status_code, response.headers, body, elapsed_ms)


def _read(response: requests.Response, maximum: int) -> bytes:
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > maximum:
        raise BodyTooLarge("announced", response.status_code)
    chunks: list[bytes] = []
    size = 0
    while chunk := response.raw.read(CHUNK_BYTES, decode_content=True):
        size += len(chunk)
        if size > maximum:
            raise BodyTooLarge("received", response.status_code)
        chunks.append(chunk)
    return b"".join(chunks)


def _typed(error: Exception, deadline: float) -> CallFailed:
    late = isinstance(error, requests.exceptions.Timeout | urllib3.exceptions.TimeoutError | TimeoutError)
    if late or time.monotonic() >= deadline:
        return DeadlineExceeded(type(error).__name__)
    return TransportFailure(type(error).__name__)


_lock = threading.Lock()
_adapter: LimitedAdapter | None = None
_context: ssl.SSLContext | None = None


@contextmanager
def _adapter_for(permitted: Callable[[str], bool] | None) -> Iterator[LimitedAdapter]:
    """The shared one; or, where addresses are judged, one without connections that were made unjudged."""
    if permitted is None:
        yield _shared_adapter()
        return
    own = LimitedAdapter(1, _shared_context())
    try:
        yield own
    finally:
        own.close()


def _shared_adapter() -> LimitedAdapter:
    global _adapter
    context = _shared_context()
    with _lock:
        if _adapter is None:
            _adapter = LimitedAdapter(POOL_SIZE, context)
        return _adapter


def _shared_context() -> ssl.SSLContext:
    global _context
    with _lock:
        _context = _context or tls_context()
        return _context


def _forget_connections() -> None:
    """A forked child must not talk on its parent's connections, nor wait for a lock that no thread of it holds."""
    global _adapter, _lock
    _adapter = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_connections)
