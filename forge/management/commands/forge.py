"""`manage.py forge create-repo|import|issues`: repositories, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from base.console import console_of, row_limit, table_of
from base.errors import CodedError
from forge import services
from forge.assignments import attempts_for_issues
from forge.assignments.objective import clone_url
from forge.importing import import_from
from forge.management.finding import repository_called, user_called
from forge.models import Issue, Repository
from forge.states import IssueState, Visibility

HEADINGS = ("#", "STATE", "ATTEMPTS", "TITLE")


class Command(BaseCommand):
    help = "Make and fill repositories, and look at their issues. Exit status 3: there is no such user or repository."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="create-repo|import|issues")
        one = _with_repository(actions.add_parser("create-repo", help="make an empty repository"))
        one.add_argument("--visibility", choices=Visibility.values, default=Visibility.PRIVATE.value)
        one.add_argument("--default-branch", default="main")
        one.add_argument("--description", default="")
        one = _with_repository(
            actions.add_parser("import", help="bring in every branch and tag of another repository")
        )
        one.add_argument("source", metavar="FOLDER|URL", help="where Git finds it")
        one.add_argument("--visibility", choices=Visibility.values, default=Visibility.PRIVATE.value)
        one.add_argument("--default-branch", default="main")
        one = _with_repository(
            actions.add_parser("issues", help="the issues of a repository and the attempts at them")
        )
        one.add_argument("--state", choices=IssueState.values)
        one.add_argument("--limit", type=row_limit, default=50)
        one.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            getattr(self, "_" + action.replace("-", "_"))(**options)
        except CodedError as error:
            raise CommandError(f"{error.detail} ({error.code})") from error

    def _create_repo(self, *, visibility: str, default_branch: str, description: str, **options: Any) -> None:
        owner, name = _split(options["repository"])
        made = services.create_repository(
            user_called(owner),
            name,
            visibility=visibility,
            default_branch=default_branch,
            description=description,
        )
        self.stdout.write(clone_url(made))

    def _import(self, *, source: str, visibility: str, default_branch: str, **options: Any) -> None:
        owner, name = _split(options["repository"])
        found = Repository.objects.filter(
            owner=user_called(owner), name=name, lifecycle_state="ready"
        ).first()
        repository = found or services.create_repository(
            user_called(owner), name, visibility=visibility, default_branch=default_branch
        )
        folder = Path(source)
        receipt = import_from(repository, str(folder.resolve()) if folder.is_dir() else source)
        moved = 0 if receipt is None else len(receipt.refs)
        self.stdout.write(f"{clone_url(repository)}: {moved} refs")

    def _issues(self, *, state: str | None, limit: int, json: bool, **options: Any) -> None:
        issues = Issue.objects.filter(repository=repository_called(options["repository"]))
        found = list((issues.filter(state=state) if state else issues).order_by("-number")[:limit])
        attempts = attempts_for_issues(found)
        for issue in found if json else ():
            self._print_json(issue, [one.state for one in attempts[issue.pk]])
        if not json:
            rows = [
                (issue.number, issue.state, ", ".join(one.state for one in attempts[issue.pk]), issue.title)
                for issue in found
            ]
            console_of(self.stdout).print(table_of(HEADINGS, rows, numbers=HEADINGS[:1]))

    def _print_json(self, issue: Issue, attempts: list[str]) -> None:
        says = {"number": issue.number, "state": issue.state, "title": issue.title, "attempts": attempts}
        self.stdout.write(json.dumps(says))


def _with_repository(parser: CommandParser) -> CommandParser:
    parser.add_argument("repository", metavar="OWNER/NAME")
    return parser


def _split(text: str) -> tuple[str, str]:
    owner, slash, name = text.partition("/")
    if not slash:
        raise CommandError(f"{text!r} is not OWNER/NAME")
    return owner, name
