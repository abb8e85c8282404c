"""What a start tells the user once the processes run: that all is good, the first run, and how to go on from there."""

from __future__ import annotations

import json
import shlex
import threading
from pathlib import Path

from rich.text import Text

from . import program, provision
from .api_client import Api
from .first_attempt import FirstAttempt
from .first_run import FirstRun, FirstRunFailed
from .patient_api import PatientApi
from .terminal import Terminal

DONE_FILE = "first-run-done"


class Provisioned:
    """What `provision` did."""

    def __init__(self, last_line: str) -> None:
        told = json.loads(last_line)
        self.user = str(told["user"])
        self.created = bool(told["created"])
        self.token_created = bool(told["token_created"])


class Guide:
    """Talks to the site at `url` as its administrator, whose secrets are in `state`/private.

    `boxes_reach_site`: whether a box can clone from there.
    """

    def __init__(
        self, terminal: Terminal, url: str, state: Path, stopping: threading.Event, *, boxes_reach_site: bool
    ) -> None:
        self._terminal = terminal
        self._url = url
        self._state = state
        self._stopping = stopping
        self._boxes_reach_site = boxes_reach_site

    @property
    def had_first_run(self) -> bool:
        return (self._state / DONE_FILE).exists()

    def first_run(self) -> int:
        """Do a run and show it; its exit status, or 1 with a sentence if there is none."""
        run = self._chosen()
        self._terminal.say()
        self._terminal.say(run.title, style="bold")
        try:
            status = run.do()
        except FirstRunFailed as reason:
            self._terminal.say(f"The run could not be done: {reason}.", style="bold red")
            return 1
        (self._state / DONE_FILE).touch()
        return status

    def _chosen(self) -> FirstRun:
        """An attempt at an issue, where there is what it takes."""
        token = (self._state / "private" / provision.TOKEN_FILE).read_text().strip()
        api = PatientApi(Api(self._url, token), self._stopping.is_set)
        if not program.has_git():
            self._terminal.say(
                "git is not installed here: a plain run, without a repository.", style="yellow"
            )
        elif not self._boxes_reach_site:
            self._terminal.say(
                f"Boxes elsewhere cannot reach {self._url}: a plain run, without a repository. Set PUBLIC_BASE_URL.",
                style="yellow",
            )
        else:
            return FirstAttempt(api, self._say, token)
        return FirstRun(api, self._say)

    def closing_words(self, provisioned: Provisioned) -> None:
        """Where everything is and how to use it."""
        self._terminal.say()
        self._say_named("site", f"staff: {self._url}/admin/    owners: {self._url}/fleet/")
        self._say_named("", f"API: {self._url}/api/v1/    its description: {self._url}/api/docs/")
        self._say_account(
            provisioned, show_password=provisioned.created, show_token=provisioned.token_created
        )
        self._terminal.say()
        self._terminal.say("Try it from another terminal:", style="bold")
        for line in curl_lines(self._url, self._state / "private" / provision.HEADER_FILE):
            self._terminal.say(f"  {line}")
        self._terminal.say()

    def say_account(self, provisioned: Provisioned) -> None:
        """Who the administrator is and which files hold the secrets; not the secrets, since `--once` is what scripts call."""
        self._terminal.say()
        self._say_account(provisioned, show_password=False, show_token=False)
        self._terminal.say()

    def _say_account(self, provisioned: Provisioned, *, show_password: bool, show_token: bool) -> None:
        private = self._state / "private"
        self._say_named("user", provisioned.user)
        self._say_named("password", _secret(private / provision.PASSWORD_FILE, shown=show_password))
        self._say_named("token", _secret(private / provision.TOKEN_FILE, shown=show_token))

    def _say_named(self, name: str, value: str) -> None:
        self._terminal.say(Text(f"{name:>9}  ", style="bold").append(value, style="not bold"))

    def _say(self, text: str, style: str) -> None:
        self._terminal.say(f"  {text}", style=style)


def curl_lines(url: str, header_file: Path) -> list[str]:
    """Three requests to copy: a box, a command in it, the box stopped. The token is read from its file by curl."""
    curl = f"curl -sS -H @{shlex.quote(str(header_file))} -H 'Content-Type: application/json'"
    return [
        f"""{curl} -d '{body}' {url}/api/v1{path}"""
        for path, body in (
            ("/boxes", '{"label": "mine", "wait": 20}'),
            ("/boxes/mine/commands", '{"command": "uname -a; id; ls -la"}'),
            ("/boxes/mine/stop", "{}"),
        )
    ]


def _secret(path: Path, *, shown: bool) -> str:
    if not path.exists():
        return "as you have set it"
    return f"{path.read_text().strip()}    (shown this once; kept in {path})" if shown else f"kept in {path}"
