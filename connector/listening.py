"""Our side of the Agent Client Protocol: what an agent says and asks during one delegation."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acp import RequestError
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    CurrentModeUpdate,
    DeniedOutcome,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    WriteTextFileResponse,
)

from connector.policy import EDITS, Verdict, judge, paths_of
from connector.roots import Roots, real

Tell = Callable[..., object]
LONGEST_FILE_BYTES = 10 << 20
SHOWN_BYTES = 8_000
"""What a server keeps of the words of a delegation that still runs."""
PROSE_CHARACTERS = 16_000
PERMISSIONS_TOLD = 200
REFUSALS_TOLD = 1_000
"""An agent that asks for ever must not fill the disk with what is to be told."""


class Listener:
    """Hears one agent out. `tell(kind, **body)` puts something into the outbox."""

    def __init__(self, tier: str, roots: Roots, cwd: str, tell: Tell) -> None:
        self.tier, self.roots, self.cwd, self._tell = tier, roots, cwd, tell
        self.replaying = False
        """While an agent repeats what was said before."""
        self.mode = ""
        self.failed_tools: list[str] = []
        self._words = ""
        self._since_tool = ""
        self._unsaid = ""
        self._said_bytes = 0
        self._tools: dict[str, ToolCallUpdate] = {}
        self._tool_titles: dict[str, str] = {}
        self._told_tools = 0
        self._permissions = 0

    @property
    def prose(self) -> str:
        """The agent's last words: what it said since it last used a tool, or else all that it said."""
        return (self._since_tool.strip() or self._words.strip())[-PROSE_CHARACTERS:]

    @property
    def tool_calls(self) -> int:
        return len(self._tool_titles)

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        if self.replaying:
            return
        if isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContentBlock):
            self._hear(update.content.text)
        elif isinstance(update, ToolCallStart | ToolCallProgress):
            self._note_tool(update)
        elif isinstance(update, CurrentModeUpdate):
            self.mode = update.current_mode_id

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        known = self._tools.get(tool_call.tool_call_id)
        kind = tool_call.kind or (known.kind if known else None)
        paths = paths_of(tool_call, self.cwd) + (paths_of(known, self.cwd) if known else [])
        verdict = await asyncio.to_thread(judge, self.tier, kind, paths, self.roots)
        title = tool_call.title or self._tool_titles.get(tool_call.tool_call_id, "")
        self._tell_permission(title, kind, verdict)
        return _answer(verdict, options)

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        file = self._checked(path, "read")
        with _as_request_errors(path), os.fdopen(self.roots.open_file(file, os.O_RDONLY), "rb") as opened:
            data = opened.read(LONGEST_FILE_BYTES + 1)
        if len(data) > LONGEST_FILE_BYTES:
            raise RequestError.invalid_params({"reason": "the file is too large"})
        text = data.decode(errors="replace")
        if line is not None or limit is not None:
            first = max(0, (line or 1) - 1)
            lines = text.splitlines(keepends=True)
            text = "".join(lines[first : None if limit is None else first + limit])
        return ReadTextFileResponse(content=text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> WriteTextFileResponse:
        file = self._checked(path, "edit")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with (
            _as_request_errors(path),
            os.fdopen(self.roots.open_file(file, flags, make_folders=True), "wb") as opened,
        ):
            opened.write(content.encode(errors="replace"))
        return WriteTextFileResponse()

    def flush(self) -> None:
        """Tell what was said and done since the last time."""
        text, self._unsaid = self._unsaid[:SHOWN_BYTES], self._unsaid[SHOWN_BYTES:]
        if self._said_bytes >= SHOWN_BYTES:
            text = self._unsaid = ""
        if not text and self.tool_calls == self._told_tools:
            return
        self._said_bytes += len(text.encode(errors="replace"))
        self._told_tools = self.tool_calls
        self._tell("progress", text=text, tool_calls=self.tool_calls)

    def on_connect(self, conn: Any) -> None:
        """Nothing to do."""

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """What is not known is not answered."""

    def _hear(self, text: str) -> None:
        self._unsaid += text
        self._words = (self._words + text)[-2 * PROSE_CHARACTERS :]
        self._since_tool = (self._since_tool + text)[-2 * PROSE_CHARACTERS :]

    def _note_tool(self, update: ToolCallStart | ToolCallProgress) -> None:
        tool_id = update.tool_call_id
        if isinstance(update, ToolCallStart):
            self._since_tool = ""
            self._tools[tool_id] = update  # type: ignore[assignment]  # the same fields, all of them there
        self._tool_titles[tool_id] = update.title or self._tool_titles.get(tool_id, "a tool")
        if update.status == "failed" and len(self.failed_tools) < 20:
            self.failed_tools.append(self._tool_titles[tool_id][:200])

    def _checked(self, path: str, kind: str) -> Path:
        """The file that a path leads to, if the policy allows it. What is opened is what was judged."""
        file = real(path)
        verdict = judge(self.tier, kind, [path if file is None else str(file)], self.roots)
        if kind in EDITS or not verdict.allowed:
            self._tell_permission(f"{kind} a file", kind, verdict)
        if file is None or not verdict.allowed:
            raise RequestError.invalid_params({"reason": verdict.reason})
        return file

    def _tell_permission(self, title: str, kind: str | None, verdict: Verdict) -> None:
        self._permissions += 1
        if self._permissions > (PERMISSIONS_TOLD if verdict.allowed else REFUSALS_TOLD):
            return
        self._tell(
            "permission",
            title=title[:200],
            tool=kind or "other",
            decision="allowed" if verdict.allowed else "refused",
            reason=verdict.reason,
        )


@contextmanager
def _as_request_errors(path: str) -> Iterator[None]:
    """What the file system says, in the words of the protocol."""
    try:
        yield
    except FileNotFoundError:
        raise RequestError.resource_not_found(path) from None
    except OSError as error:
        raise RequestError.invalid_params({"reason": error.strerror or "it cannot be opened"}) from None


def _answer(verdict: Verdict, options: list[PermissionOption]) -> RequestPermissionResponse:
    """The option that says it for this once; one that says it for ever only where there is no other to refuse by."""
    wanted = ["allow_once"] if verdict.allowed else ["reject_once", "reject_always"]
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return RequestPermissionResponse(
                    outcome=AllowedOutcome(outcome="selected", option_id=option.option_id)
                )
    if verdict.allowed and options and any(option.kind == "allow_always" for option in options):
        option = next(option for option in options if option.kind == "allow_always")
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=option.option_id)
        )
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
