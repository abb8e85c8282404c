"""The product on the tests' database: its pages over HTTP, a worker, and a real provider of boxes."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Any

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import connections
from django.test.testcases import LiveServerThread
from django.test.utils import override_settings

from base import wakeups
from openagents_site.periodic import periodic_work
from openagents_site.registry import drivers
from openagents_site.worker import Worker
from tests.localbox.server import LocalboxServer


class CuttableServer(ThreadedWSGIServer):
    """A web server whose connections can be cut in the middle, as a proxy or a bad network does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.accepted: list[socket.socket] = []

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.accepted.append(connection)
        return connection, address

    def cut(self) -> None:
        for connection in self.accepted:
            with contextlib.suppress(OSError):  # it has ended already
                connection.shutdown(socket.SHUT_RDWR)
        self.accepted.clear()


class WebThread(LiveServerThread):
    server_class = CuttableServer


class Site:
    """Everything that a person at a browser meets. Leaving the context ends all of it."""

    def __init__(self) -> None:
        self.provider = LocalboxServer()
        self.web = WebThread("127.0.0.1", StaticFilesHandler)
        self.web.daemon = True
        self.worker: Worker | None = None
        self._working = threading.Thread(target=self._work, name="worker", daemon=True)
        self._settings: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.web.port}"

    def cut_connections(self) -> None:
        """End every connection that is open now."""
        self.web.httpd.cut()

    def __enter__(self) -> Site:
        self.provider.start()
        self._settings = override_settings(
            BOX_API={
                "base_url": self.provider.base_url,
                "api_key": self.provider.key,
                "run_poll_interval_ms": 100,
            },
        )
        self._settings.enable()
        self.web.start()
        self.web.is_ready.wait()
        assert self.web.error is None, self.web.error
        self._working.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.worker is not None:
            self.worker.stop()
        self._working.join(60)
        self.web.terminate()
        wakeups.of_this_process.stop()
        self._settings.disable()
        self.provider.close()

    def _work(self) -> None:
        self.worker = Worker(drivers(), periodic_work())
        try:
            self.worker.run()
        finally:
            self.worker.link.close()
            connections.close_all()
