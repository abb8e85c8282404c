"""A paired computer that is there and does what it is told at once: the least that speaks the machines' channel."""

from __future__ import annotations

import threading
from typing import Any

import requests

AGENTS = [{"id": "claude", "name": "Claude Code"}]


class Machine:
    """Connected while the context lasts. Delegations complete by themselves; what is to be done in
    production is refused."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/machine/v1/"
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {token}"
        self._sent = 0
        self._stopping = threading.Event()
        self._listening = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Machine:
        self._epoch = self._connect()
        self._listening.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._listening.join(30)

    def _connect(self) -> int:
        hello = {
            "protocol": 1, "agent_version": "1.0.0", "heard": 0, "oldest": 1, "delegations": [],
            "probe": {"agents": AGENTS, "system": "linux"},
        }  # fmt: skip
        return int(self._ask("POST", "connect", json=hello)["epoch"])

    def _listen(self) -> None:
        heard = 0
        while not self._stopping.is_set():
            try:
                news = self._ask("GET", "poll", params={"epoch": self._epoch, "heard": heard, "wait": 1})
            except requests.RequestException:  # it was revoked, or the server ends
                return
            for frame in news["frames"]:
                heard = frame["seq"]
                self._obey(frame["kind"], frame["body"])

    def _obey(self, kind: str, body: dict[str, Any]) -> None:
        job = {name: body.get(name) for name in ("job", "attempt")}
        if kind == "check":
            self._tell("answer", request=body["request"], answer={"allowed": True})
        elif kind == "probe":
            self._tell("answer", request=body["request"], answer={"agents": AGENTS, "system": "linux"})
        elif kind == "offer":
            self._tell("accepted", **job)
            self._tell("session", **job, session_id="session-1", model="opus")
            self._tell("result", **job, **_end(body["prompt"]))

    def _tell(self, kind: str, **body: Any) -> None:
        self._sent += 1
        frames = [{"seq": self._sent, "kind": kind, "body": body}]
        self._ask("POST", "frames", json={"epoch": self._epoch, "frames": frames})

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        answer = self._session.request(method, self._url + path, timeout=40, **options)
        answer.raise_for_status()
        return answer.json()


def _end(prompt: str) -> dict[str, Any]:
    if "production" in prompt:
        return {"status": "refused", "detail": "I do not touch production.", "tool_calls": 0}
    return {"status": "completed", "prose": "The test waits for the server now.", "tool_calls": 3}
