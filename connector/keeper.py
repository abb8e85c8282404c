"""A program of its own that stands above one agent: what the agent starts and leaves behind comes back to it, so that all of it is found.

    python -I -S keeper.py COMMAND [ARGUMENT...]

It starts the command with its own standard input and output, says on standard error `started PID` or `failed ERRNO`, and later
`ended CODE`. It lives until the last of them has ended, and asks nobody to end: that is done by who started it. Told to clear
(SIGUSR1) it kills from then on the group of whatever comes back to it, so that what forks faster than anybody can look ends too.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

KEEPS = "OPENAGENTS_KEEPS"
"""A variable in the surroundings of a keeper, and of nothing beneath it, by which it is found again."""

CLEAR = signal.SIGUSR1
_PR_SET_CHILD_SUBREAPER = 36
_ASKED_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(command: list[str]) -> int:
    """Start the command and wait for all that comes of it."""
    _become_subreaper()
    is_clearing: list[bool] = []
    for number in _ASKED_TO_END:
        signal.signal(number, _stay)  # a handler, not SIG_IGN, which the agent would inherit
    signal.signal(CLEAR, lambda *_: is_clearing.append(True))
    try:
        agent = _start(command)
    except OSError as error:
        _say(f"failed {error.errno}")
        return 127
    _say(f"started {agent.pid}")
    _let_go_of_the_conversation()
    return _wait_for_all(agent, is_clearing)


def _become_subreaper() -> None:
    """Orphans beneath this process come back to it, whatever they did to detach. Linux alone can do so; elsewhere nothing happens."""
    if sys.platform == "linux":
        one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(ctypes.c_int(_PR_SET_CHILD_SUBREAPER), one, zero, zero, zero)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """The agent leads a session of its own: what it sends to its group does not meet the keeper."""
    surroundings = {name: value for name, value in os.environ.items() if name != KEEPS}
    return subprocess.Popen(command, env=surroundings, stderr=subprocess.DEVNULL, start_new_session=True)


def _let_go_of_the_conversation() -> None:
    """Who talks to the agent has to see when the agent is gone."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def _wait_for_all(agent: subprocess.Popen[bytes], is_clearing: list[bool]) -> int:
    while True:
        try:
            ended, status = _next_ended(is_clearing)
        except ChildProcessError:
            return 0
        if ended == agent.pid:
            _say(f"ended {os.waitstatus_to_exitcode(status)}")


def _next_ended(is_clearing: list[bool]) -> tuple[int, int]:
    if sys.platform != "linux":
        return os.wait()  # nothing comes back to it there but the agent
    found = os.waitid(
        os.P_ALL, 0, os.WEXITED | os.WNOWAIT
    )  # it keeps its number, and its group, until it is waited for
    assert found is not None, "only a look that does not wait finds nobody"
    if is_clearing:
        _kill_group_of(found.si_pid)
    return os.waitpid(found.si_pid, 0)


def _kill_group_of(pid: int) -> None:
    """No member escapes by a fork while its group is killed. What was started here has left the keeper's own group."""
    try:
        group = os.getpgid(pid)
        if group != os.getpgrp():
            os.killpg(group, signal.SIGKILL)
    except OSError:
        return  # there is nobody else in it


def _say(line: str) -> None:
    try:
        os.write(2, f"{line}\n".encode())
    except OSError:
        return  # nobody listens any more


def _stay(*_: object) -> None:
    """Only who started it ends it, after everything else."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
