"""What a box answered, as typed values.

A reply is text from a machine that its owner controls: it may be cut, garbled or a lie. Nothing here crashes on it.
Lines that are not `OA_NAME=value` are ignored, of a repeated name the last line counts, and a value out of its range
counts as absent. What cannot be used at all raises `ReplyInvalid`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from base.errors import CodedError

Answer = str | Mapping[str, object]

EXISTS_MARK = "OPENAGENTS_RUN_EXISTS"
MAX_PID = 2**31 - 1
MAX_OFFSET = 2**63 - 1
MAX_DATA_BYTES = 16 * 1024 * 1024

_LINE = re.compile(r"^OA_([A-Z]+)=(.*)$")
_DATA = re.compile(r"^OA_DATA=((?:[A-Za-z0-9+/=]*[\r\n]+)*+[A-Za-z0-9+/=]*)(?![^\r\n])", re.MULTILINE)
_UNFINISHED = ""
_NUMBER = re.compile(r"[0-9]{1,19}")
_CODE = re.compile(r"[a-z_]{1,40}(?: [A-Za-z0-9_.-]{1,40})?")


class ReplyInvalid(CodedError):
    """The box answered something that cannot be understood."""

    code = "box_response_invalid"


@dataclass(frozen=True, slots=True)
class DispatchReply:
    """`pid`: it runs. `exists`: the directory was there before, so somebody dispatched it. `error`: it never will run."""

    pid: int | None = None
    exists: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """Whether the run was started; without `present` it never will be. The pid may be unknown although present."""

    present: bool
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class LogPiece:
    """`data` are the log's bytes from `offset` on; `size` is the log's length when it was looked at.

    `cut` says that bytes were announced and did not arrive whole: ask again from the same offset, for fewer.
    """

    offset: int = 0
    size: int = 0
    data: bytes = field(default=b"", repr=False)
    cut: bool = False

    @property
    def next_offset(self) -> int:
        """The offset after the last byte received, whatever the log's size is said to be."""
        return self.offset + len(self.data)

    def data_from(self, offset: int) -> bytes:
        """The bytes from `offset` on, if this piece reaches back to it without a gap; else none."""
        return self.data[offset - self.offset :] if self.offset <= offset else b""


@dataclass(frozen=True, slots=True)
class Exit:
    """How the run's shell ended. `status` is 0 to 255.

    `signal` is set only where the shell saw its child die by it; a status above 128 alone does not tell. `memory` is a
    hint: the kernel ended a process for lack of memory meanwhile. `log_size` is how much output there was at the end.
    """

    status: int
    signal: int | None = None
    memory: bool = False
    log_size: int | None = None


@dataclass(frozen=True, slots=True)
class PollReply:
    """One look at a run. `alive` is None where the box did not say."""

    present: bool
    log: LogPiece = LogPiece()
    exit: Exit | None = None
    alive: bool | None = None

    @property
    def is_drained(self) -> bool:
        """It ended, and every byte that was written until then has been received with this reply or before it."""
        if self.exit is None or self.log.cut:
            return False
        end = self.log.size if self.exit.log_size is None else min(self.exit.log_size, self.log.size)
        return self.log.next_offset >= end


@dataclass(frozen=True, slots=True)
class KillReply:
    """`cancelled`: nothing of the run is left. `exit` is there only if the run had ended by itself before the kill."""

    cancelled: bool
    remaining: tuple[int, ...] = ()
    log: LogPiece = LogPiece()
    exit: Exit | None = None


def parse_dispatch(answer: Answer) -> DispatchReply:
    """Reads a dispatch's answer; `ReplyInvalid` where it holds neither a pid nor one of the two marks."""
    text = _stdout(answer)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if EXISTS_MARK in lines:
        return DispatchReply(exists=True)
    if error := _error(_fields(text)):
        return DispatchReply(error=error)
    pid = _integer(lines[-1] if lines else None, MAX_PID)
    if not pid and isinstance(answer, Mapping):
        pid = _integer(answer.get("pid"), MAX_PID)
    if not pid:
        raise ReplyInvalid(detail="the box did not say which process it started")
    return DispatchReply(pid=pid)


def parse_probe(answer: Answer) -> ProbeReply:
    """Reads a probe's answer; `ReplyInvalid` where it does not say whether the run is there."""
    fields = _fields(_stdout(answer))
    return ProbeReply(_present(fields), _integer(fields.get("PID"), MAX_PID) or None)


def parse_poll(answer: Answer, *, offset: int | None = None) -> PollReply:
    """Reads a poll's answer, as lines of text or as a mapping of `present, log_size, output, exit_status, alive`.

    `offset` is the one that was asked for; where neither it nor the reply says where the data begin, they are taken as
    the end of the log. Raises `ReplyInvalid` where the reply does not say whether the run is there.
    """
    if isinstance(answer, Mapping) and not isinstance(answer.get("stdout"), str):
        return _structured(answer, offset)
    fields = _fields(_stdout(answer))
    if not _present(fields):
        return PollReply(present=False)
    return PollReply(True, _log(fields, offset), _exit(fields), _flag(fields.get("ALIVE")))


def parse_kill(answer: Answer, *, offset: int | None = None) -> KillReply:
    """Reads a kill's answer; `ReplyInvalid` where it does not say whether the run is gone."""
    fields = _fields(_stdout(answer))
    cancelled = _flag(fields.get("CANCELLED"))
    if cancelled is None:
        raise ReplyInvalid(detail=_error(fields) or "the box did not say whether the run is gone")
    words = fields.get("REMAINING", "").split()[:1000]
    pids = tuple(pid for word in words if (pid := _integer(word, MAX_PID)))
    return KillReply(cancelled, pids, _log(fields, offset), _exit(fields))


def _structured(answer: Mapping[str, object], asked: int | None) -> PollReply:
    present = answer.get("present")
    if not isinstance(present, bool):
        raise ReplyInvalid(detail="the box did not say whether the run is there")
    if not present:
        return PollReply(present=False)
    output = answer.get("output")
    data = (
        output
        if isinstance(output, bytes)
        else output.encode("utf-8", "replace")
        if isinstance(output, str)
        else b""
    )
    size = _integer(_either(answer, "log_size", "logSize"), MAX_OFFSET)
    start = _integer(answer.get("offset"), MAX_OFFSET)
    if start is None:
        start = asked if asked is not None else max(0, (len(data) if size is None else size) - len(data))
    status = _integer(_either(answer, "exit_status", "exitStatus"), 255)
    alive = answer.get("alive")
    piece = LogPiece(start, start + len(data) if size is None else size, data)
    return PollReply(
        True, piece, None if status is None else Exit(status), alive if isinstance(alive, bool) else None
    )


def _either(answer: Mapping[str, object], first: str, second: str) -> object:
    return answer[first] if answer.get(first) is not None else answer.get(second)


def _stdout(answer: Answer) -> str:
    if isinstance(answer, str):
        return answer
    text = answer.get("stdout")
    return text if isinstance(text, str) else ""


def _fields(text: str) -> dict[str, str]:
    """The fields of a reply. One that stops inside a line before the log is told has the mark of an unfinished one."""
    head, data = _told_apart(text)
    matches = (_LINE.match(line.strip("\r")) for line in head.split("\n"))
    fields = {match[1]: match[2] for match in matches if match}
    if data is not None:
        fields["DATA"] = data
    if "EXIT" in fields and "SIZE" not in fields and not text.endswith("\n"):
        fields[_UNFINISHED] = ""
    return fields


def _told_apart(text: str) -> tuple[str, str | None]:
    """The lines and, without them, the data: base64 in one line or many, up to a line that is something else."""
    found = _DATA.search(text)
    return (text[: found.start()] + text[found.end() :], found[1]) if found else (text, None)


def _error(fields: Mapping[str, str]) -> str | None:
    """The code that a script gave, if it is one; a foreign text is not repeated."""
    match = _CODE.fullmatch(fields.get("ERROR", "").strip())
    return match[0].replace(" ", ":") if match else None


def _integer(value: object, highest: int) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = int(value) if _NUMBER.fullmatch(value.strip()) and value.isascii() else None
    return value if isinstance(value, int) and 0 <= value <= highest else None


def _flag(value: str | None) -> bool | None:
    return {"0": False, "1": True}.get((value or "").strip())


def _present(fields: Mapping[str, str]) -> bool:
    present = _flag(fields.get("PRESENT"))
    if present is None:
        raise ReplyInvalid(detail=_error(fields) or "the box did not say whether the run is there")
    return present


def _exit(fields: Mapping[str, str]) -> Exit | None:
    status = _integer(fields.get("EXIT"), 255)
    if status is None:
        return None
    signal = _integer(fields.get("SIGNAL"), 127)
    return Exit(status, signal or None, fields.get("MEMORY") == "1", _integer(fields.get("END"), MAX_OFFSET))


def _log(fields: Mapping[str, str], asked: int | None) -> LogPiece:
    data, cut = _data(fields)
    size = _integer(fields.get("SIZE"), MAX_OFFSET)
    offset = _integer(fields.get("OFFSET"), MAX_OFFSET)
    if offset is None:
        offset = asked if asked is not None else max(0, (size or 0) - len(data))
    cut = cut or _UNFINISHED in fields or ("END" in fields and not {"LENGTH", "DATA"} <= fields.keys())
    return LogPiece(offset, offset + len(data) if size is None else size, data, cut)


def _data(fields: Mapping[str, str]) -> tuple[bytes, bool]:
    """The decoded bytes and whether some are missing; a part of what was announced counts as nothing."""
    encoded, length = fields.get("DATA"), _integer(fields.get("LENGTH"), MAX_OFFSET)
    if encoded is None or len(encoded) > MAX_DATA_BYTES * 4 // 3 + 4:
        return b"", encoded is not None or bool(length)
    try:
        data = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return b"", True
    return (b"", True) if length is not None and length != len(data) else (data, False)
