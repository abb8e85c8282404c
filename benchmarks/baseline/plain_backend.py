"""Git over HTTP the plain way: `git http-backend` as a CGI program under the same server, and nothing else.

    GIT_PROJECT_ROOT=DIRECTORY python -m gunicorn -k gthread --threads 32 benchmarks.baseline.plain_backend:application

Every repository below `GIT_PROJECT_ROOT` may be read and written by anybody: no rights, no hook, no receipt, no limit.
"""

from __future__ import annotations

import io
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

PIECE_BYTES = 1 << 16
COMMAND = ["git", "-c", "http.receivepack=true", "-c", "transfer.unpackLimit=1", "http-backend"]


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterator[bytes]:
    """One request is one process."""
    process = subprocess.Popen(
        COMMAND, env=_variables(environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    feeder = threading.Thread(target=_feed, args=(environ["wsgi.input"], process.stdin))
    feeder.start()
    answer = io.BufferedReader(process.stdout)  # type: ignore[type-var]  # it is raw, since Popen was asked not to buffer
    headers = dict(_headers(answer))
    status = headers.pop("Status", "200 OK")
    start_response(status, list(headers.items()))
    return _rest(answer, process, feeder)


def _variables(environ: dict[str, Any]) -> dict[str, str]:
    plain = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": os.environ["GIT_PROJECT_ROOT"]}
    plain |= {"GIT_HTTP_EXPORT_ALL": "1", "GIT_CONFIG_NOSYSTEM": "1", "HOME": os.environ["GIT_PROJECT_ROOT"]}
    asked = {key: value for key, value in environ.items() if isinstance(value, str) and key.isupper()}
    asked["GIT_PROTOCOL"] = environ.get("HTTP_GIT_PROTOCOL", "")
    return plain | asked


def _feed(body: Any, program: IO[bytes]) -> None:
    with program:
        while piece := body.read(PIECE_BYTES):
            program.write(piece)


def _headers(answer: IO[bytes]) -> Iterator[tuple[str, str]]:
    while line := answer.readline().strip():
        name, _, value = line.decode().partition(":")
        yield name, value.strip()


def _rest(answer: IO[bytes], process: subprocess.Popen[bytes], feeder: threading.Thread) -> Iterator[bytes]:
    with answer:
        while piece := answer.read(PIECE_BYTES):
            yield piece
    feeder.join()
    process.wait()
