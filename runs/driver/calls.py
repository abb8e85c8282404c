"""One command to a box and what it told. Runs in a thread; no database."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import structlog

from base.redaction import signs_of_secrets
from boxes.client import CommandResult
from boxes.errors import ProviderError, Refused, RetryLater
from runs import replies
from runs.decide import Observation, Send, Step, Trouble, TroubleKind
from runs.driver.task import Reply, Task
from runs.policy import PIECE_BYTES, piece_bytes
from runs.scripts import dispatch_script, kill_script, poll_script, probe_script

log = structlog.get_logger(__name__)

DISPATCH_SECONDS = 30
PROBE_SECONDS = 15
KILL_SECONDS = 30
POLL_SECONDS = 10
NOISE_BYTES = 32 * 1024
MOST_SIGNS = 4096  # in a piece of the largest size; each takes some thirty microseconds


def call(task: Task) -> Reply:
    """Send the task's command and read its answer. What went wrong is in the reply, not raised."""
    assert isinstance(task.action, Send)
    started = time.monotonic()
    try:
        result = task.client.command(task.box_id, _script(task), _seconds(task.action))
        return _read(task, result, time.monotonic() - started)
    except ProviderError as error:
        return Reply(Observation(task.action.step, trouble=trouble_of(error)))
    except replies.ReplyInvalid as error:
        return Reply(Observation(task.action.step, trouble=Trouble(TroubleKind.UNKNOWN, error.code)))


def trouble_of(error: ProviderError) -> Trouble:
    """The error in the words of the decision."""
    if gone := error.gone_code:
        return Trouble(TroubleKind.GONE, gone)
    kind = TroubleKind.UNKNOWN
    if isinstance(error, Refused):
        kind = TroubleKind.REFUSED
    elif isinstance(error, RetryLater):
        kind = TroubleKind.RETRY_LATER
    return Trouble(kind, error.code, error.retry_after_seconds)


def _script(task: Task) -> str:
    offset = task.run.received
    assert isinstance(task.action, Send)
    match task.action.step:
        case Step.DISPATCH:
            return dispatch_script(task.run_directory, task.command, credential=task.credential)
        case Step.PROBE:
            return probe_script(task.run_directory)
        case Step.KILL:
            return kill_script(task.run_directory, offset=offset, max_bytes=PIECE_BYTES)
        case Step.POLL:
            piece = piece_bytes(task.run.log_size - offset, task.run.step_failures)
            wait = task.action.wait_seconds
            return poll_script(task.run_directory, offset=offset, max_bytes=piece, wait_seconds=wait)


def _seconds(action: Send) -> int:
    """The time the command gets on the box; the client adds its own margin."""
    match action.step:
        case Step.DISPATCH:
            return DISPATCH_SECONDS
        case Step.PROBE:
            return PROBE_SECONDS
        case Step.KILL:
            return KILL_SECONDS
        case Step.POLL:
            return POLL_SECONDS + action.wait_seconds


def _read(task: Task, result: CommandResult, seconds: float) -> Reply:
    assert isinstance(task.action, Send)
    answer = _answer(result)
    match task.action.step:
        case Step.DISPATCH:
            return _dispatched(replies.parse_dispatch(answer))
        case Step.PROBE:
            probe = replies.parse_probe(answer)
            return Reply(Observation(Step.PROBE, present=probe.present, pid=probe.pid))
        case Step.KILL:
            kill = replies.parse_kill(answer, offset=task.run.received)
            if kill.remaining:
                log.warning("run_processes_remain", run=str(task.id), pids=list(kill.remaining))
            return _with_log(task, kill.log, kill.exit, Observation(Step.KILL, killed=kill.cancelled))
        case Step.POLL:
            poll = replies.parse_poll(answer, offset=task.run.received)
            seen = Observation(
                Step.POLL,
                present=poll.present,
                alive=poll.alive,
                asked_to_wait=task.action.wait_seconds,
                waited_seconds=seconds,
            )
            return _with_log(task, poll.log, poll.exit, seen)


def _answer(result: CommandResult) -> replies.Answer:
    """What the scripts printed; a provider that answers in fields of its own instead is understood too."""
    if not result.stdout and "present" in result.raw:
        return result.raw
    return {"stdout": result.stdout, "pid": result.pid}


def _dispatched(reply: replies.DispatchReply) -> Reply:
    if reply.error is not None:
        return Reply(Observation(Step.DISPATCH, never_ran=f"dispatch_{reply.error}"[:128]))
    return Reply(Observation(Step.DISPATCH, pid=reply.pid))


def _with_log(task: Task, log: replies.LogPiece, end: replies.Exit | None, seen: Observation) -> Reply:
    """The observation with what the reply says of log and exit."""
    offset = task.run.received
    data = bearable(log.data_from(offset))
    seen = replace(seen, log_size=log.size, received=len(data), is_cut=log.cut)
    if end is not None:
        seen = replace(
            seen,
            exit_status=end.status,
            exit_signal=signal_name(end.signal),
            out_of_memory=end.memory,
            log_end=end.log_size,
        )
    return Reply(seen, offset, data)


def bearable(data: bytes) -> bytes:
    """The bytes, or only the beginning of what is costly to look through, since other runs are waiting: binary noise, and
    text that is full of what looks like secrets."""
    if len(data) <= NOISE_BYTES:
        return data
    lost = len(data) - len(data.decode("utf-8", "ignore").encode()) + data.count(0)
    is_costly = lost * 32 > len(data) or signs_of_secrets(data) > MOST_SIGNS
    return data[:NOISE_BYTES] if is_costly else data


def signal_name(number: int | None) -> str | None:
    """`SIGKILL` for 9; a number that has no name here as `SIG41`."""
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
