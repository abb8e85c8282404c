"""A box that is up, as the provider holds it: every call is one question to the box's supervisor."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from .ending import end_box
from .exchange import ask
from .interface import BoxSpec, CommandResult, DetachedCommand, DetachedStatus, RuntimeFault, SupervisorRecord

_SECONDS = 30.0  # a start, a status
_FILE_SECONDS = 150.0  # above the supervisor's own limit for work on files
_RUN_MARGIN_SECONDS = 30.0  # after a command's timeout: ending its tree, sending its output


class SupervisedBox:
    """`BoxHandle` over a supervisor's socket. Holds nothing but where the supervisor is."""

    def __init__(self, spec: BoxSpec, record: SupervisorRecord) -> None:
        self.spec = spec
        self.record = record

    async def run(self, command: str, *, cwd: str | None, timeout_seconds: float) -> CommandResult:
        """See `BoxHandle.run`. A command with a zero byte in it is `invalid_command`."""
        header = {"do": "run", "cwd": cwd, "timeout_seconds": timeout_seconds}
        seconds = timeout_seconds + _RUN_MARGIN_SECONDS
        answer = await ask(self.record, header, _text(command), seconds=seconds)
        end = dict(answer.header)
        size = end.pop("stdout_size")
        return CommandResult(stdout=answer.body[:size], stderr=answer.body[size:], **end)

    async def start_detached(self, command: str, *, cwd: str | None) -> DetachedCommand:
        """See `BoxHandle.start_detached`. A command with a zero byte in it is `invalid_command`."""
        header = {"do": "start", "cwd": cwd}
        answer = await ask(self.record, header, _text(command), seconds=_SECONDS)
        names = ("process_id", "pid", "log_path", "err_path", "started_at", "cwd")
        return DetachedCommand(**{name: answer.header[name] for name in names})

    async def detached_status(self, process_id: int, *, tail_bytes: int) -> DetachedStatus:
        """See `BoxHandle.detached_status`."""
        header = {"do": "status", "process_id": process_id, "tail_bytes": tail_bytes}
        answer = await ask(self.record, header, seconds=_SECONDS)
        return _status(answer.header, answer.body)

    async def read_file(self, path: str) -> tuple[str, bytes]:
        """See `BoxHandle.read_file`. The content comes from the opened file, not through the supervisor."""
        answer = await ask(self.record, {"do": "read", "path": path}, seconds=_FILE_SECONDS)
        if not answer.files:
            raise RuntimeFault(
                "box_direct_failed", "the file could not be handed over: too many files are open"
            )
        content = await asyncio.to_thread(_content, answer.files[0], self.spec.limits.file_bytes)
        return answer.header["path"], content

    async def write_file(self, path: str, content: bytes) -> str:
        """See `BoxHandle.write_file`."""
        if len(content) > self.spec.limits.file_bytes:
            raise RuntimeFault("file_too_large", f"a file may have {self.spec.limits.file_bytes} bytes")
        held = await asyncio.to_thread(_in_memory, content)
        try:
            header = {"do": "write", "path": path}
            answer = await ask(self.record, header, seconds=_FILE_SECONDS, files=(held,))
        finally:
            os.close(held)
        return str(answer.header["path"])

    async def disk_bytes(self) -> int:
        """Bytes on disk of the box's home."""
        answer = await ask(self.record, {"do": "disk"}, seconds=_FILE_SECONDS)
        return int(answer.header["bytes"])

    async def stop(self) -> None:
        """See `BoxHandle.stop`. A supervisor that does not answer is ended from outside."""
        await end_box(self.spec, self.record)


def _text(command: str) -> bytes:
    try:
        text = command.encode()
    except UnicodeEncodeError as error:
        raise RuntimeFault("invalid_command", "the command is not valid Unicode") from error
    if b"\0" in text:
        raise RuntimeFault("invalid_command", "the command has a zero byte in it")
    return text


def _status(header: dict[str, Any], body: bytes) -> DetachedStatus:
    known = {
        name: value
        for name, value in header.items()
        if name not in ("stdout_size", "command_size", "dropped")
    }
    first, last = header["stdout_size"], len(body) - header["command_size"]
    return DetachedStatus(stdout=body[:first], stderr=body[first:last], command=body[last:].decode(), **known)


def _content(fd: int, ceiling: int) -> bytes:
    """All of the file, even if it grows meanwhile, but never more than `ceiling`."""
    with open(fd, "rb") as file:
        content = file.read(ceiling + 1)
    if len(content) > ceiling:
        raise RuntimeFault("file_too_large", f"the file grew beyond {ceiling} bytes while it was read")
    return content


def _in_memory(content: bytes) -> int:
    """An unnamed file with this content, which the box's user can copy from without reaching any path of ours."""
    fd = os.memfd_create("content", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    return fd
