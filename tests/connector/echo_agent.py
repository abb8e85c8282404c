"""An agent on the protocol's SDK that does what the prompt says, line by line, and remembers how far it came.

    say TEXT                tell it
    write FILE TEXT         have the client write a file (relative names are below the session's folder)
    append FILE TEXT        write to a file itself, at its end
    read FILE               have the client read a file, and say it
    ask KIND PATH           ask for permission, and say the answer
    wait FILE               until the file is there
    spawn FILE              start a process that leaves the group and outlives its parent; its number goes to the file
    tool STATUS TITLE       a tool call with this end
    sh COMMAND              run a command in the folder, and say what it printed
    exit CODE               die
    refuse                  end with the stop reason `refusal`

Sessions are kept in ECHO_SESSIONS, if set; without it none can be loaded again.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from acp import (
    Agent,
    RequestError,
    run_agent,
    start_tool_call,
    text_block,
    update_agent_message,
    update_tool_call,
)
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallLocation,
    ToolCallUpdate,
)

SESSIONS = os.environ.get("ECHO_SESSIONS", "")
DAEMON = "import os,time; os.setsid(); open({file!r}, 'w').write(str(os.getpid())); time.sleep(600)"


class EchoAgent(Agent):
    def __init__(self) -> None:
        self.client: Any = None
        self.folders: dict[str, str] = {}
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        able = AgentCapabilities(load_session=bool(SESSIONS))
        return InitializeResponse(protocol_version=protocol_version, agent_capabilities=able)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        session_id = f"echo-{uuid.uuid4().hex[:12]}"
        self.folders[session_id] = cwd
        self._remember(session_id, 0)
        return NewSessionResponse(session_id=session_id)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        if not self._file(session_id).exists():
            raise RequestError.resource_not_found(session_id)
        self.folders[session_id] = cwd
        await self._say(session_id, "what was said before")
        return LoadSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        lines = prompt[0].text.split("\n\n")[-1].splitlines()
        for number in range(self._done(session_id), len(lines)):
            word, _, rest = lines[number].partition(" ")
            if word == "refuse":
                return PromptResponse(stop_reason="refusal")
            await getattr(self, f"do_{word}")(session_id, rest)
            self._remember(session_id, number + 1)
        return PromptResponse(stop_reason="end_turn")

    async def do_say(self, session_id: str, text: str) -> None:
        await self._say(session_id, text)

    async def do_write(self, session_id: str, rest: str) -> None:
        name, _, text = rest.partition(" ")
        try:
            await self.client.write_text_file(
                session_id=session_id, path=self._path(session_id, name), content=text
            )
        except RequestError:
            await self._say(session_id, f"may not write {name}\n")

    async def do_append(self, session_id: str, rest: str) -> None:
        name, _, text = rest.partition(" ")
        with open(self._path(session_id, name), "a", encoding="utf-8") as file:
            file.write(text + "\n")

    async def do_read(self, session_id: str, name: str) -> None:
        try:
            answer = await self.client.read_text_file(
                session_id=session_id, path=self._path(session_id, name)
            )
            await self._say(session_id, answer.content)
        except RequestError:
            await self._say(session_id, f"may not read {name}\n")

    async def do_ask(self, session_id: str, rest: str) -> None:
        kind, _, path = rest.partition(" ")
        call = ToolCallUpdate(
            tool_call_id="call-ask", kind=kind, title=f"{kind} something", status="pending",
            locations=[ToolCallLocation(path=self._path(session_id, path))] if path else None,
        )  # fmt: skip
        options = [
            PermissionOption(option_id="always", name="Always", kind="allow_always"),
            PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
            PermissionOption(option_id="no", name="No", kind="reject_once"),
        ]
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
        await self._say(session_id, f"{kind}: {getattr(answer.outcome, 'option_id', 'cancelled')}\n")

    async def do_wait(self, session_id: str, name: str) -> None:
        while not os.path.exists(self._path(session_id, name)):
            await asyncio.sleep(0.02)

    async def do_spawn(self, session_id: str, name: str) -> None:
        file = self._path(session_id, name)
        subprocess.Popen([sys.executable, "-c", f"import subprocess,sys; subprocess.Popen([sys.executable, '-c', {DAEMON.format(file=file)!r}])"])  # fmt: skip
        await self.do_wait(session_id, name)

    async def do_tool(self, session_id: str, rest: str) -> None:
        status, _, title = rest.partition(" ")
        call_id = uuid.uuid4().hex
        await self.client.session_update(
            session_id=session_id, update=start_tool_call(call_id, title, kind="other")
        )
        await self.client.session_update(
            session_id=session_id, update=update_tool_call(call_id, status=status)
        )

    async def do_sh(self, session_id: str, command: str) -> None:
        running = await asyncio.create_subprocess_shell(
            command,
            cwd=self.folders[session_id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await running.communicate()
        await self._say(session_id, said.decode())

    async def do_exit(self, session_id: str, code: str) -> None:
        os._exit(int(code))

    async def _say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id=session_id, update=update_agent_message(text_block(text)))

    def _path(self, session_id: str, name: str) -> str:
        return os.path.join(self.folders[session_id], name)

    def _file(self, session_id: str) -> Path:
        return Path(SESSIONS) / f"{session_id}.json"

    def _remember(self, session_id: str, done: int) -> None:
        if SESSIONS:
            draft = self._file(session_id).with_suffix(".draft")
            draft.write_text(json.dumps({"done": done}))
            draft.replace(self._file(session_id))

    def _done(self, session_id: str) -> int:
        return int(json.loads(self._file(session_id).read_text())["done"]) if SESSIONS else 0


if __name__ == "__main__":
    asyncio.run(run_agent(EchoAgent()))
