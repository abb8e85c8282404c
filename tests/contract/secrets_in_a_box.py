"""An attempt whose command prints what it should keep to itself: its Git credential, and a secret that the installation knows."""

from __future__ import annotations

import re
from typing import Any

from openagents_site.launcher import program
from tests.contract.exchange import Caller
from tests.contract.installation import SECRETS, Running

# Backwards the credential is no secret that anybody could know, so it is how the test learns of it.
COMMAND = """\
rev "$OPENAGENTS_RUN_DIRECTORY/forge-credential" > ~/backwards
cat "$OPENAGENTS_RUN_DIRECTORY/forge-credential" ~/registered >&2
key=$(cat ~/registered) sh -c 'echo "the key is $key"'
false
"""


def use(server: Running) -> dict[str, str]:
    """The credential by its name. What the command printed is struck out."""
    ask = Caller(server.url, server.tokens)
    box = ask("POST", "/boxes", {"wait": 25}, by="staff")["id"]
    _in(ask, box, f"printf %s {SECRETS['SECRET_VALUES']} > ~/registered")
    run = _attempt(ask, server, box)
    printed = ask("GET", "/runs/{run_id}/log", by="staff", run_id=run)["output"]
    backwards = _in(ask, box, "cat ~/backwards")
    ask("POST", "/boxes/{ref}/stop", by="staff", ref=box)
    found = re.search(r"oa_assignment_[^@\s]+", backwards[::-1])
    assert found, backwards
    assert printed == "[REDACTED_URL]\n[REDACTED]the key is [REDACTED]\n"
    return {"credential of an attempt": found[0]}


def _in(ask: Caller, box: str, command: str) -> str:
    told = ask("POST", "/boxes/{ref}/commands", {"command": command}, by="staff", ref=box)
    assert told["exit_status"] == 0, told
    return str(told["stdout"])


def _attempt(ask: Caller, server: Running, box: str) -> Any:
    """The run of an attempt that has ended."""
    repository = ask("POST", "/repositories", {"name": "cellar"}, by="staff")
    program.push(repository["clone_url"], server.tokens["staff"])
    issue = {"title": "It leaks", "body": "Find out where."}
    here = {"repository_id": repository["id"]}
    number = ask("POST", "/repositories/{repository_id}/issues", issue, by="staff", **here)["number"]
    wanted = {"repository": repository["id"], "issue_number": str(number), "box": box, "command": COMMAND}
    attempt = ask("POST", "/assignments", wanted, by="staff")["id"]
    path = "/assignments/{assignment_id}"
    ended = ask.until("is_terminal", "GET", path, by="staff", query="?wait=10", assignment_id=attempt)
    return ended["run"]
