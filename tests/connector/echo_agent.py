"""An agent that does what the prompt says, line by line, and remembers how far it came.

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

Sessions are kept in ECHO_SESSIONS, if set; without it none can be loaded again. It speaks the protocol itself, as the
SDK takes longer to load than most of what it is told to do; the connector judges each of its messages by that SDK.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

SESSIONS = os.environ.get("ECHO_SESSIONS", "")
DAEMON = "import os,time; os.setsid(); open({file!r}, 'w').write(str(os.getpid())); time.sleep(600)"
LONGEST_LINE = 64 << 20
NOT_FOUND = {"code": -32002, "message": "Resource not found"}


class Refused(Exception):
    """The client answered with an error."""


class Link:
    """JSON-RPC in lines, both ways, until the client closes its end."""

    def __init__(self, agent: EchoAgent) -> None:
        self._agent = agent
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    async def keep(self) -> None:
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        async with asyncio.TaskGroup() as working:
            while line := await reader.readline():
                message = json.loads(line)
                if "method" not in message:
                    self._asked.pop(message["id"]).set_result(message)
                elif "id" in message:
                    working.create_task(self._answer(message))
            os._exit(0)  # nobody waits for what is still at work

    async def ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        self.tell(id=number, method=method, params=params)
        answer = await answered
        if "error" in answer:
            raise Refused(answer["error"])
        return answer.get("result")

    def tell(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        sys.stdout.flush()

    async def _answer(self, message: dict[str, Any]) -> None:
        handle = getattr(self._agent, "on_" + message["method"].replace("/", "_"))
        result = await handle(message["params"])
        self.tell(id=message["id"], **({"result": result} if result is not None else {"error": NOT_FOUND}))


class EchoAgent:
    def __init__(self) -> None:
        self.link = Link(self)
        self.folders: dict[str, str] = {}

    async def on_initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        able = {"loadSession": bool(SESSIONS)}
        return {"protocolVersion": params["protocolVersion"], "agentCapabilities": able}

    async def on_session_new(self, params: dict[str, Any]) -> dict[str, Any]:
        session_id = f"echo-{uuid.uuid4().hex[:12]}"
        self.folders[session_id] = params["cwd"]
        self._remember(session_id, 0)
        return {"sessionId": session_id}

    async def on_session_load(self, params: dict[str, Any]) -> dict[str, Any] | None:
        session_id = params["sessionId"]
        if not self._file(session_id).exists():
            return None
        self.folders[session_id] = params["cwd"]
        self._say(session_id, "what was said before")
        return {}

    async def on_session_prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        session_id = params["sessionId"]
        lines = params["prompt"][0]["text"].split("\n\n")[-1].splitlines()
        for number in range(self._done(session_id), len(lines)):
            word, _, rest = lines[number].partition(" ")
            if word == "refuse":
                return {"stopReason": "refusal"}
            await getattr(self, f"do_{word}")(session_id, rest)
            self._remember(session_id, number + 1)
        return {"stopReason": "end_turn"}

    async def do_say(self, session_id: str, text: str) -> None:
        self._say(session_id, text)

    async def do_write(self, session_id: str, rest: str) -> None:
        name, _, text = rest.partition(" ")
        path = self._path(session_id, name)
        try:
            await self.link.ask("fs/write_text_file", sessionId=session_id, path=path, content=text)
        except Refused:
            self._say(session_id, f"may not write {name}\n")

    async def do_append(self, session_id: str, rest: str) -> None:
        name, _, text = rest.partition(" ")
        with open(self._path(session_id, name), "a", encoding="utf-8") as file:
            file.write(text + "\n")

    async def do_read(self, session_id: str, name: str) -> None:
        path = self._path(session_id, name)
        try:
            answer = await self.link.ask("fs/read_text_file", sessionId=session_id, path=path)
            self._say(session_id, answer["content"])
        except Refused:
            self._say(session_id, f"may not read {name}\n")

    async def do_ask(self, session_id: str, rest: str) -> None:
        kind, _, path = rest.partition(" ")
        call = {"toolCallId": "call-ask", "kind": kind, "title": f"{kind} something", "status": "pending"}
        if path:
            call |= {"locations": [{"path": self._path(session_id, path)}]}
        options = [
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        answer = await self.link.ask(
            "session/request_permission", sessionId=session_id, toolCall=call, options=options
        )
        self._say(session_id, f"{kind}: {answer['outcome'].get('optionId', 'cancelled')}\n")

    async def do_wait(self, session_id: str, name: str) -> None:
        while not os.path.exists(self._path(session_id, name)):
            await asyncio.sleep(0.02)

    async def do_spawn(self, session_id: str, name: str) -> None:
        file = self._path(session_id, name)
        subprocess.Popen([sys.executable, "-c", f"import subprocess,sys; subprocess.Popen([sys.executable, '-c', {DAEMON.format(file=file)!r}])"])  # fmt: skip
        await self.do_wait(session_id, name)

    async def do_tool(self, session_id: str, rest: str) -> None:
        status, _, title = rest.partition(" ")
        call = {"toolCallId": uuid.uuid4().hex}
        self._update(session_id, "tool_call", **call, title=title, kind="other")
        self._update(session_id, "tool_call_update", **call, status=status)

    async def do_sh(self, session_id: str, command: str) -> None:
        running = await asyncio.create_subprocess_shell(
            command,
            cwd=self.folders[session_id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await running.communicate()
        self._say(session_id, said.decode())

    async def do_exit(self, session_id: str, code: str) -> None:
        os._exit(int(code))

    def _say(self, session_id: str, text: str) -> None:
        self._update(session_id, "agent_message_chunk", content={"type": "text", "text": text})

    def _update(self, session_id: str, what: str, /, **more: Any) -> None:
        update = {"sessionUpdate": what} | more
        self.link.tell(method="session/update", params={"sessionId": session_id, "update": update})

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
    asyncio.run(EchoAgent().link.keep())
