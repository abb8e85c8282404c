"""One command on a box, waited for."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from base.redaction import redact
from base.sql import ClockTimestamp
from base.text import keep_last_bytes, storable
from boxes import selectors
from boxes.client import client
from boxes.conf import box_api
from boxes.errors import BoxNotFound, BoxNotReady, BoxStopped, InvalidRequest
from boxes.models import Box
from boxes.states import UP

LONGEST_COMMAND_BYTES = 4000
LONGEST_TIMEOUT_SECONDS = 570
DEFAULT_TIMEOUT_SECONDS = 60
OUTPUT_BYTES = 24_576  # of each stream, its end


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """How a command ended. Output is redacted and bounded to its last 24,576 bytes each; `truncated` says that some is missing.

    `exit_status` is None if the provider did not say it.
    """

    exit_status: int | None
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool


def run_command(
    conversation_id: UUID, box_ref: str, command: str, timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
) -> CommandOutput:
    """Run a command (1 to 4,000 bytes) with bash in the box and wait at most `timeout_seconds` (1 to 570).

    It counts as activity from its begin to its end. While it waits no database connection is held. Raises InvalidRequest
    `invalid_command` or `invalid_command_timeout`, BoxNotFound `box_not_owned`, BoxStopped, BoxNotReady, ProviderError;
    Unknown among these says that the command may have run.
    """
    _check(command, timeout_seconds)
    box = _usable_box(conversation_id, box_ref)
    assert box.box_id is not None
    _stamp_activity(box)
    try:
        result = client().command(box.box_id, command, timeout_seconds)
    finally:
        _stamp_activity(box)
    stdout, stdout_cut = _shown(result.stdout)
    stderr, stderr_cut = _shown(result.stderr)
    truncated = result.truncated or stdout_cut or stderr_cut
    return CommandOutput(result.exit_status, stdout, stderr, result.timed_out, truncated)


def _check(command: object, timeout_seconds: object) -> None:
    if not isinstance(command, str) or not command.strip() or "\0" in command or not _fits(command):
        raise InvalidRequest("invalid_command")
    if isinstance(timeout_seconds, bool) or not isinstance(timeout_seconds, int):
        raise InvalidRequest("invalid_command_timeout")
    if not 1 <= timeout_seconds <= LONGEST_TIMEOUT_SECONDS:
        raise InvalidRequest("invalid_command_timeout")


def _fits(command: str) -> bool:
    try:
        return len(command.encode()) <= LONGEST_COMMAND_BYTES
    except UnicodeEncodeError:
        return False


def _usable_box(conversation_id: UUID, box_ref: str) -> Box:
    box = selectors.find(conversation_id, box_ref)
    if box is None:
        raise BoxNotFound("box_not_owned")
    if box.stopped_at is not None or box.stop_requested_at is not None:
        raise BoxStopped
    if box.box_id is None or box.state not in UP:
        raise BoxNotReady
    return box


def _stamp_activity(box: Box) -> None:
    Box.objects.filter(pk=box.pk).update(last_activity_at=ClockTimestamp())


def _shown(text: str) -> tuple[str, bool]:
    conf = box_api()
    secrets = [*conf.secret_values, *([conf.api_key] if conf.api_key else [])]
    return keep_last_bytes(redact(storable(text), secrets=secrets), OUTPUT_BYTES)
