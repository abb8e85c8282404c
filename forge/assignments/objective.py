"""What an attempt is told, and how long it may take: texts made of the issue. Pure but for the site's address."""

from __future__ import annotations

import re
import shlex
from urllib.parse import urlsplit

from django.conf import settings

from base.text import keep_first_bytes
from forge import limits
from forge.errors import FieldsInvalid
from forge.models import Assignment, Issue, Repository
from runs.models.run import LONGEST_COMMAND_BYTES
from work.limits import PROMPT_BYTES

HEADINGS = ("problem", "scope", "acceptance criteria", "success metrics")
SHORTEST_PRELUDE_BYTES = 3_000
"""Room that is kept for what comes before the command; the objective takes what is left of it."""

_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s*|\*{2})?([a-z][a-z ]+?)\s*(?:\*{2})?:?\s*(?:\*{2})?\s*#*\s*$", re.I | re.M
)


def wall_clock_seconds(body: str) -> int:
    """How long an attempt at an issue with this body may take: an hour if it has all four headings, else 15 minutes."""
    found = {" ".join(name.lower().split()) for name in _HEADING.findall(body)}
    is_thorough = all(heading in found for heading in HEADINGS)
    return limits.LONG_WALL_CLOCK_SECONDS if is_thorough else limits.SHORT_WALL_CLOCK_SECONDS


def clone_url(repository: Repository) -> str:
    """Where Git finds the repository. No secret is in it."""
    return f"{settings.PUBLIC_BASE_URL}/{repository.owner.slug}/{repository.name}.git"


def text_for(issue: Issue, branch: str, repository: Repository, most: int = PROMPT_BYTES) -> str:
    """What an agent is to do, where the caller gave no prompt; at most `most` bytes."""
    ending = (
        f"\n\nThe repository is {clone_url(repository)}. Work on the branch {branch} and push it; "
        "no other branch can be pushed."
    )
    head = f"Issue #{issue.number}: {issue.title}\n\n"
    room = min(limits.OBJECTIVE_BODY_BYTES, most - len((head + ending).encode()))
    return head + keep_first_bytes(issue.body, room).rstrip() + ending


def check_length(command: str) -> None:
    """Raises FieldsInvalid for a command that leaves no room for what comes before it."""
    most = LONGEST_COMMAND_BYTES - SHORTEST_PRELUDE_BYTES
    if len(command.encode()) > most:
        raise FieldsInvalid({"command": f"1 to {most:,} bytes"}, "invalid_command")


def box_command(assignment: Assignment) -> str:
    """The run's command: the repository is cloned on the branch, an identity set, and then the caller's command.

    `OPENAGENTS_OBJECTIVE` holds what an agent is to do, as much of it as there is room for.
    """
    command = assignment.command or "true"
    wanted = assignment.prompt or text_for(assignment.issue, assignment.branch, assignment.repository)
    without = _script(assignment, "", command)
    room = LONGEST_COMMAND_BYTES - len(without.encode())
    return _script(assignment, _quoted_within(wanted, room), command)


def _script(assignment: Assignment, objective: str, command: str) -> str:
    host = urlsplit(settings.PUBLIC_BASE_URL).hostname or "localhost"
    facts = {
        "OPENAGENTS_ASSIGNMENT": str(assignment.pk),
        "OPENAGENTS_ISSUE": str(assignment.issue.number),
        "OPENAGENTS_BRANCH": assignment.branch,
    }
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in facts.items())
    return _PRELUDE.format(
        exports=exports,
        objective=objective or "''",
        url=shlex.quote(clone_url(assignment.repository)),
        name=shlex.quote(f"attempt at #{assignment.issue.number}"),
        email=shlex.quote(f"assignment-{assignment.pk}@{host}"),
        command=_carried_out(command),
    )


def _carried_out(command: str) -> str:
    """The command as the end of the script; one that chooses its own interpreter as a file of its own."""
    if not command.startswith("#!"):
        return command
    end = "OPENAGENTS_END_OF_COMMAND"
    while end in command:
        end += "_"
    return (
        f"cat > ../command <<'{end}'\n{command}\n{end}\n"
        "chmod 700 ../command || openagents_failed 'the command could not be written'\n"
        "exec ../command"
    )


def _quoted_within(text: str, room: int) -> str:
    """The text as one shell word of at most `room` bytes; cut where it is longer."""
    room += len("''")
    while len((word := shlex.quote(text)).encode()) > room:
        if not text:
            return "''"
        text = keep_first_bytes(text, len(text.encode()) - max(16, len(word.encode()) - room) // 4 - 1)
    return word


_PRELUDE = """\
# Made by OpenAgents: the repository cloned, its branch checked out, an identity set. The command follows.
openagents_failed() {{ echo "openagents: $1" >&2; exit 70; }}
export {exports}
export OPENAGENTS_OBJECTIVE={objective}
command -v git >/dev/null || openagents_failed 'git is not installed on this box'
cd "$OPENAGENTS_RUN_DIRECTORY" && git clone --quiet -- {url} repository && cd repository \\
  || openagents_failed 'the repository could not be cloned'
if git show-ref --verify --quiet "refs/remotes/origin/$OPENAGENTS_BRANCH"
then git checkout --quiet -B "$OPENAGENTS_BRANCH" "refs/remotes/origin/$OPENAGENTS_BRANCH"
else git checkout --quiet -b "$OPENAGENTS_BRANCH"
fi || openagents_failed 'the branch could not be checked out'
git config user.name {name} && git config user.email {email} && git config push.default current \\
  || openagents_failed 'an identity could not be set'
{command}
"""
