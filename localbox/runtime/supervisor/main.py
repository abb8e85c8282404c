"""The supervisor's life: told what to do on standard input, detached, ready, serving, gone."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import resource
import signal
import sys

from . import processes
from .box import Box
from .bwrap import BwrapSandbox
from .fault import Fault
from .plain import PlainSandbox
from .server import listen
from .settings import RECORD, SOCKET, Settings
from .wire import Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sandbox import Sandbox

_LOCK = "lock"
_LOG = "supervisor.log"


def main() -> None:
    """Read the settings, detach, start the box, say so on standard output in one JSON line, and serve it."""
    settings = Settings(sys.stdin.buffer.read())
    if os.fork():
        os._exit(0)
    os.setsid()
    _arrange(settings)
    try:
        box = _bring_up(settings)
    except Fault as fault:
        _announce({"code": fault.code, "message": fault.message})
        return
    except Exception as error:
        sys.excepthook(*sys.exc_info())
        _announce({"code": "start_failed", "message": f"the box did not start: {error}"})
        return
    signal.signal(signal.SIGTERM, lambda number, frame: _end_soon(box))
    _announce(_record(settings))
    gc.freeze()
    box.loop.run()
    os.unlink(SOCKET)
    os.unlink(RECORD)


def _arrange(settings: Settings) -> None:
    """In the supervisor's own folder: nothing of the provider's stays open but standard output, for one line."""
    _reset_signals()
    os.umask(0o077)
    os.chdir(settings.run)
    log = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    os.close(log)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(3, 1024)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _reset_signals() -> None:
    """A provider started with nohup ignores signals; commands must not inherit that."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    # Python ignores these, and a program that is started would inherit that. What is caught starts anew in it.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, lambda number, frame: None)


def _bring_up(settings: Settings) -> Box:
    lock = os.open(_LOCK, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)  # held open for life
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise Fault("start_failed", "another supervisor holds this box") from error
    box = Box(settings, _sandbox(settings))
    try:
        listen(box.loop, SOCKET, box.handle)
        with open(RECORD, "w", encoding="utf-8") as file:
            json.dump(_record(settings), file)
    except BaseException:
        box.end()
        raise
    return box


def _sandbox(settings: Settings) -> Sandbox:
    sandbox = BwrapSandbox(settings) if settings.bwrap else PlainSandbox(settings)
    sandbox.start()
    return sandbox


def _end_soon(box: Box) -> None:
    """Whoever ends the supervisor ends the box: its processes must not be left without an owner."""
    box.loop.after(0, box.end)


def _record(settings: Settings) -> Header:
    me = processes.look(os.getpid())
    start_time = me.start_time if me else 0
    return {"pid": os.getpid(), "start_time": start_time, "socket": os.path.join(settings.run, SOCKET)}


def _announce(line: Header) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.write(1, json.dumps(line).encode() + b"\n")
    except BrokenPipeError:  # the provider was killed; another one will look for this box and end it
        print("nobody waited for the start", file=sys.stderr)
    os.dup2(nothing, 1)
    os.close(nothing)
