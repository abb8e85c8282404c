"""Sockets that know when their call must be over.

A read timeout starts anew with every byte, so a server that drips can hold a caller for hours. Here every single receive
and send gets only the time that the whole call has left, TLS handshake and response head included. There is no
watchdog thread and nothing to clean up: the limit lives in the socket.

The one thing that cannot be cut is the resolver: a name look-up takes what the system's resolver allows it.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests.adapters
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Retry
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.connection import create_connection

IDLE_SECONDS = 1.5
"""A connection unused for longer is not used again. Servers close idle connections after 2 s and more, without a
word; a request that meets such a close has an unknown outcome, and one that cannot be repeated would be lost."""

_call = threading.local()


class AddressRefused(OSError):
    """The host has no address that the caller permits."""


@contextmanager
def limited_to(deadline: float, permitted: Callable[[str], bool] | None = None) -> Iterator[None]:
    """Until it is left, no socket of this thread waits beyond `deadline` (on `time.monotonic`).

    With `permitted`, new connections go only to addresses for which it is true: it is asked of what the name resolved to, and
    the connection is made to that very address.
    """
    _call.deadline, _call.permitted = deadline, permitted
    try:
        yield
    finally:
        _call.deadline = _call.permitted = None


def _seconds_left() -> float | None:
    """What the call of this thread may still take; None outside a call. Raises TimeoutError when it is used up."""
    deadline: float | None = getattr(_call, "deadline", None)
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline of the call has passed")
    return left


class _LimitedSocket(socket.socket):
    """A TCP socket whose every wait ends at the deadline of the call."""

    used_at = 0.0

    def recv_into(self, *args: Any) -> int:
        self.settimeout(_seconds_left())
        received = super().recv_into(*args)
        self.used_at = time.monotonic()
        return received

    def sendall(self, *args: Any) -> None:
        self.settimeout(_seconds_left())
        super().sendall(*args)


class _LimitedTlsSocket(ssl.SSLSocket):
    """The same over TLS, where sendall is a loop of sends."""

    used_at = 0.0

    def recv_into(self, *args: Any) -> int:
        self.settimeout(_seconds_left())
        received = super().recv_into(*args)
        self.used_at = time.monotonic()
        return received

    def send(self, *args: Any) -> int:
        self.settimeout(_seconds_left())
        return super().send(*args)


def _connected(host: str, port: int, options: Any) -> _LimitedSocket:
    """A connected socket. The time left is shared out, so that a dead first address leaves some for the next."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = _permitted(list(dict.fromkeys(str(entry[4][0]) for entry in found)))
    for position, address in enumerate(addresses):
        left = _seconds_left()
        share = left / (len(addresses) - position) if left is not None else None
        try:
            plain = create_connection((address, port), share, socket_options=options)
        except OSError:
            if position + 1 == len(addresses):
                raise
            continue
        limited = _LimitedSocket(fileno=plain.detach())
        limited.settimeout(_seconds_left())
        return limited
    raise OSError("the name has no address")


def _permitted(addresses: list[str]) -> list[str]:
    """Those that the call of this thread permits. Raises AddressRefused if there are some and none is."""
    permits: Callable[[str], bool] | None = getattr(_call, "permitted", None)
    if permits is None:
        return addresses
    good = [address for address in addresses if permits(address)]
    if addresses and not good:
        raise AddressRefused("the host has no permitted address")
    return good


class _LimitedConnection(HTTPConnection):
    """An HTTP connection on a limited socket; one that idled too long counts as closed."""

    def _new_conn(self) -> socket.socket:
        try:
            return _connected(self._dns_host, self.port or 0, self.socket_options)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "no connection within the deadline of the call") from error
        except OSError as error:
            raise NewConnectionError(self, f"no connection: {type(error).__name__}") from error

    @property
    def is_connected(self) -> bool:
        idle = time.monotonic() - getattr(self.sock, "used_at", 0.0)
        return idle < IDLE_SECONDS and super().is_connected


class _LimitedTlsConnection(_LimitedConnection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _LimitedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _LimitedTlsConnection


def tls_context() -> ssl.SSLContext:
    """Verifies against the authorities that requests ships and those of OpenSSL, so SSL_CERT_FILE and SSL_CERT_DIR can add one."""
    context = ssl.create_default_context()
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    context.sslsocket_class = _LimitedTlsSocket
    return context


class LimitedAdapter(requests.adapters.HTTPAdapter):
    """A requests adapter on limited connections, that repeats nothing by itself and shares one TLS context."""

    def __init__(self, pool_size: int, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_maxsize=pool_size, max_retries=Retry(0, read=False))

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        host, pool = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {**pool, "ssl_context": self._context} if host["scheme"] == "https" else pool

    def request_url(self, request: Any, proxies: Any) -> str:
        """Path and query: there is never a proxy."""
        path: str = request.path_url
        return path

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Nothing to load: the shared context holds the authorities, and loading them costs 10 ms per connection."""
        conn.cert_reqs = "CERT_REQUIRED"
