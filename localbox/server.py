"""The server process: socket, signals, and the order of starting and stopping."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import resource
import socket
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import uvicorn

from . import log, runtime, statedir
from .api.app import application
from .provider import Provider
from .runtime.interface import Runtime, RuntimeFault
from .settings import Settings, SettingsError
from .store.database import Database

GRACE_SECONDS = 5  # for answers still being written once every box has ended
KEEP_ALIVE_SECONDS = 75  # longer than clients keep idle connections, so that they close first
BACKLOG = 1_024
THREADS = 32  # for starting boxes, and for copying and deleting their files; commands need none


def serve(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT, then archive every box; returns the exit status. Raises SettingsError."""
    log.configure(settings.log_level)
    statedir.prepare(settings)
    with statedir.lock(settings), _listener(settings) as listener, statedir.database(settings) as database:
        _raise_file_limit()
        key, made = statedir.key(settings)
        if made:
            print(f"localbox made itself a key: it is in {settings.private_dir / statedir.KEY}", flush=True)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(settings, database, listener, key))
    return 0


def sweep(settings: Settings) -> int:
    """End whatever a killed provider left, and archive its boxes; returns how many processes were left beyond
    those of adopted boxes. Raises SettingsError while a server is using the state folder."""
    log.configure(settings.log_level)
    statedir.prepare(settings)
    with statedir.lock(settings), statedir.database(settings) as database:
        return asyncio.run(_sweep(settings, database))


async def _sweep(settings: Settings, database: Database) -> int:
    return await Provider(settings, database, _runtime(settings)).sweep()


async def _serve(settings: Settings, database: Database, listener: socket.socket, key: str) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "localbox"))
    provider = Provider(settings, database, _runtime(settings))
    adopted = await provider.open()
    config = uvicorn.Config(
        application(provider, key=key),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config, provider.close, ready=lambda: _say_ready(provider, listener, adopted))
    await server.serve(sockets=[listener])


def _runtime(settings: Settings) -> Runtime:
    try:
        chosen = runtime.choose(settings.sandbox, settings.scratch_dir)
    except RuntimeFault as fault:
        raise SettingsError(f"Boxes cannot be run here: {fault.message}") from None
    if chosen.name == "plain" and not settings.network:
        raise SettingsError(
            "LOCALBOX_NETWORK=0 needs the bwrap sandbox; plain boxes always have the network."
        )
    return chosen


def _say_ready(provider: Provider, listener: socket.socket, adopted: int) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    kept = f", {adopted} taken over" if adopted else ""
    print(f"localbox ready on http://{shown}:{port} ({provider.runtime.name} boxes{kept})", flush=True)
    log.info("ready", host=host, port=port, runtime=provider.runtime.name, why=provider.runtime.reason)
    if not ipaddress.ip_address(host).is_loopback:
        log.warning("reachable_without_tls", host=host)


class _Server(uvicorn.Server):
    """On a signal: first the boxes end, which also ends the requests that wait for them, then the server."""

    def __init__(
        self,
        config: uvicorn.Config,
        closing: Callable[[], Coroutine[Any, Any, None]],
        *,
        ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._loop = asyncio.get_running_loop()
        self._closing = closing
        self._ready = ready
        self._end: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._begin_end)

    def _begin_end(self) -> None:
        if self._end is None:
            log.info("closing")
            self._end = self._loop.create_task(self._close())

    async def _close(self) -> None:
        try:
            await self._closing()
        except Exception:
            log.exception("close_failed")
        self.should_exit = True


@contextlib.contextmanager
def _listener(settings: Settings) -> Iterator[socket.socket]:
    """The bound socket; bound here so that a taken port is one sentence. Raises SettingsError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError(
            f"LOCALBOX_HOST {settings.host!r} is not an address of this machine: {error}."
        ) from None
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise SettingsError(_why_not_bound(settings, error)) from None
        yield listener


def _why_not_bound(settings: Settings, error: OSError) -> str:
    where = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {settings.port} on {settings.host} is taken; choose another with --port or LOCALBOX_PORT."
        )
    return f"{where} cannot be listened on: {error.strerror}."


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _raise_file_limit() -> None:
    """A waiting command holds two descriptors; the usual soft limit would end at some hundred of them."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
