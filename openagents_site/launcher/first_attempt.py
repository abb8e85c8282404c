"""The first run as what the product is for: an attempt at an issue, which pushes one branch with a credential that dies with it."""

from __future__ import annotations

import shlex
from typing import Any

from . import program
from .api_client import WAIT_SECONDS, ApiError
from .first_run import FirstRun, FirstRunFailed, Say
from .patient_api import PatientApi

REPOSITORY = "greetings"
ISSUE = {
    "title": "greet says helo",
    "body": "`./check` finds that nobody is greeted as they should be: it is spelled hello.",
}
COMMAND = """\
./check || echo "It is as the issue says."
sed -i s/Helo/Hello/ greet
./check || exit 1
git commit --quiet -am "Spell hello right (fixes #$OPENAGENTS_ISSUE)"
git push --quiet || exit 1
cp "$OPENAGENTS_RUN_DIRECTORY/forge-credential" ~/kept  # what would a thief have of it?
"""
END_SECONDS = 60.0
REFUSED = "Authentication failed"


class FirstAttempt(FirstRun):
    """A repository with a small program, an issue, a box, and an attempt whose command mends the program."""

    title = "An attempt at an issue, through the public API:"

    def __init__(self, api: PatientApi, say: Say, token: str) -> None:
        super().__init__(api, say)
        self._token = token
        self._repository: dict[str, Any] = {}
        self._issue: dict[str, Any] = {}
        self._attempt: dict[str, Any] = {}

    def _prepare(self) -> None:
        self._repository = self._filled(self._found() or self._made())
        self._say(f"repository {self._repository['owner']}/{REPOSITORY}, {self._clone_url}", "green")
        issues = f"/api/v1/repositories/{self._repository['id']}/issues"
        self._issue = self._api.post(issues, ISSUE)
        self._say(f"issue #{self._issue['number']}: {self._issue['title']}", "green")

    @property
    def _clone_url(self) -> str:
        return str(self._repository["clone_url"])

    def _found(self) -> dict[str, Any] | None:
        """The repository of an earlier start."""
        me = self._api.get("/api/v1/me")["user"]
        path = f"/api/v1/repositories?owner={me['slug']}&name={REPOSITORY}"
        found = self._api.get(path)["results"]
        return dict(found[0]) if found else None

    def _made(self) -> dict[str, Any]:
        return self._api.post("/api/v1/repositories", {"name": REPOSITORY})

    def _filled(self, repository: dict[str, Any]) -> dict[str, Any]:
        if repository["pushed_at"] is None:
            try:
                program.push(repository["clone_url"], self._token)
            except program.PushFailed as reason:
                raise FirstRunFailed(f"the program could not be pushed: {reason}") from reason
        return repository

    def _start(self, box: dict[str, Any]) -> dict[str, Any]:
        self._show_command(COMMAND)
        wanted = {
            "repository": self._repository["id"],
            "issue_number": str(self._issue["number"]),
            "box": box["id"],
            "command": COMMAND,
        }
        self._attempt = self._api.post("/api/v1/assignments", wanted)
        for _ in self._api.until(END_SECONDS):
            if self._attempt["run"]:
                return self._api.get(f"/api/v1/runs/{self._attempt['run']}")
            self._look()
        raise FirstRunFailed(f"the attempt did not start (it is {self._attempt['state']})")

    def _look(self, wait: int = 0) -> None:
        self._attempt = self._api.get(f"/api/v1/assignments/{self._attempt['id']}?wait={wait}")

    def _conclude(self, box: dict[str, Any]) -> None:
        for _ in self._api.until(END_SECONDS):
            self._look(WAIT_SECONDS)
            if self._attempt["is_terminal"]:
                break
        state, commit = self._attempt["state"], self._attempt["terminal_commit"]
        if commit is None:
            raise FirstRunFailed(f"the attempt {state} without a commit ({self._attempt['failure_reason']})")
        self._say(f"the attempt {state}: {self._attempt['terminal_branch']} is at {commit}", "bold green")
        self._say(f"its credential is refused now: {self._refusal(box)}", "green")

    def _refusal(self, box: dict[str, Any]) -> str:
        """What Git hears who shows the copy that the command kept. Raises FirstRunFailed if it is let in."""
        helper = "-c credential.helper= -c credential.helper='store --file ~/kept'"
        command = f"GIT_TERMINAL_PROMPT=0 git {helper} ls-remote -- {shlex.quote(self._clone_url)}"
        try:
            told = self._api.post(f"/api/v1/boxes/{box['id']}/commands", {"command": command})
        except ApiError as error:
            raise FirstRunFailed(f"the credential could not be tried: {error.detail}") from error
        last = (told["stderr"].strip().splitlines() or [""])[-1]
        if told["exit_status"] == 0 or REFUSED not in last:
            raise FirstRunFailed(
                f"the credential was not refused (exit status {told['exit_status']}, {last})"
            )
        return str(last)
