"""gunicorn's configuration: threads for waiting viewers, the application loaded after the fork (a connection pool or a
thread that was there before it would be shared)."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

import environ

from base.conf import from_environment, resolve
from openagents_site.conf import Site

os.environ["PROCESS_ROLE"] = "web"  # read by the settings, which are loaded later, in the worker
wsgi_app = "openagents_site.wsgi:application"
bind = os.environ.get("WEB_BIND", "127.0.0.1:8000")
_site = resolve(Site, from_environment(Site, environ.Env()))
workers = _site.web_processes
worker_class = "gthread"
threads = _site.web_threads  # a waiting viewer holds one, and no database connection
preload_app = False
timeout = 120
graceful_timeout = 15
keepalive = 5
accesslog = None  # requests are logged as structured lines by the application
errorlog = "-"
control_socket_disable = True


def post_worker_init(worker: Any) -> None:
    """Let who waits go when the process is asked to end: a paired computer or a viewer would hold it for all of
    `graceful_timeout`. They ask again, and meet the next process."""
    from base import wakeups

    ends = signal.getsignal(signal.SIGTERM)
    assert callable(ends)

    def end(number: int, frame: FrameType | None) -> None:
        wakeups.of_this_process.dismiss()  # its lock is never held by the main thread, in which signals arrive
        ends(number, frame)

    signal.signal(signal.SIGTERM, end)
