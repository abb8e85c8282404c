"""`manage.py leaks list|stop|adopt|dismiss`: boxes at the provider that no row claims."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from accounts.models import User
from base.console import console_of, fitting, row_limit, table_of
from base.errors import CodedError
from boxes import leaks
from boxes.console import leak_cells
from boxes.models import ReconciliationEvent
from boxes.states import EventType

REFUSED = 1
NOT_FOUND = 3
FACTS = ("id", "provider_box_id", "owned", "details", "observed_at", "last_seen_at", "reopened_at",
         "stop_attempted_at", "handled_at", "resolution")  # fmt: skip
HEADINGS = ("LEAK", "BOX", "WHOSE", "STATE", "FIRST SEEN", "LAST SEEN", "HANDLED")
SPARE = ("FIRST SEEN", "STATE", "LAST SEEN", "WHOSE")  # what a narrow terminal does without, first ones first


class Command(BaseCommand):
    help = (
        "Look at boxes that exist at the provider without a row of ours, and handle them. LEAK is its id or the "
        "provider's id of the box. What is done is recorded with the name given by --by. Exit status 1: refused; 3: there "
        "is no such leak."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="list|stop|adopt|dismiss")
        one = actions.add_parser("list", help="open leaks, newest first")
        one.add_argument("--all", action="store_true", help="handled ones, too")
        one.add_argument("--limit", type=row_limit, default=50, help="how many (default 50)")
        one.add_argument("--json", action="store_true", help="one JSON object a line")
        _handling(actions.add_parser("stop", help="stop the box at the provider, whoever's it is"))
        one = _handling(actions.add_parser("adopt", help="give the box a row in a conversation"))
        one.add_argument("conversation", type=UUID, metavar="CONVERSATION")
        one.add_argument("--label", help="default: the next box-N of the conversation")
        _handling(actions.add_parser("dismiss", help="let the box be, and do not report it anew"))

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        if action == "list":
            self._list(**options)
            return
        leak, by = _find(options["leak"]), _staff(options["by"])
        try:
            handled = self._handle(action, leak, by, options)
        except CodedError as error:
            raise CommandError(f"{error.code}: {error.detail}", returncode=REFUSED) from None
        self.stdout.write(f"{handled.provider_box_id}: {handled.resolution}")

    def _handle(
        self, action: str, leak: ReconciliationEvent, by: User, options: dict[str, Any]
    ) -> ReconciliationEvent:
        if action == "stop":
            return leaks.stop_leak(leak, by=by)
        if action == "dismiss":
            return leaks.dismiss_leak(leak, by=by)
        return leaks.adopt_leak(leak, options["conversation"], by=by, label=options["label"])

    def _list(self, *, all: bool, limit: int, json: bool, **_: Any) -> None:
        found = ReconciliationEvent.objects.filter(event_type=EventType.LEAK)
        found = found if all else found.filter(handled_at=None)
        rows = list(found[:limit])
        if json:
            for leak in rows:
                self.stdout.write(_json({name: getattr(leak, name) for name in FACTS}))
        elif rows:
            console = console_of(self.stdout)
            console.print(
                table_of(*fitting(HEADINGS, [leak_cells(row) for row in rows], console.width, SPARE))
            )
        else:
            self.stdout.write("no leaks" if all else "no open leaks")


def _handling(parser: Any) -> Any:
    parser.add_argument("leak", metavar="LEAK")
    parser.add_argument(
        "--by", required=True, metavar="USER", help="the user name of the staff member who does it"
    )
    return parser


def _find(text: str) -> ReconciliationEvent:
    known = ReconciliationEvent.objects.filter(event_type=EventType.LEAK)
    found = known.filter(provider_box_id=text).first()
    if found is None and (leak_id := _uuid(text)) is not None:
        found = known.filter(pk=leak_id).first()
    if found is None:
        raise CommandError(f"there is no leak {text}", returncode=NOT_FOUND)
    return found


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _staff(username: str) -> User:
    user = User.objects.filter(username=username, is_staff=True, deleted_at=None).first()
    if user is None:
        raise CommandError(f"there is no staff member called {username}", returncode=REFUSED)
    return user


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, cls=DjangoJSONEncoder)
