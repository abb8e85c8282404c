"""`manage.py create_token`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from accounts.scopes import Scope
from accounts.serializers import LONGEST_LIFE_DAYS
from accounts.services import InvalidToken, create_token


def days(text: str) -> int:
    """A number of days that a token may be good for. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST_LIFE_DAYS:
        raise ArgumentTypeError(f"{text!r} is no number of days from 1 to {LONGEST_LIFE_DAYS}")
    return int(text)


class Command(BaseCommand):
    help = "Create an API token of a user and print it; it is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="as it signs in, such as admin")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument(
            "--scope", action="append", choices=Scope.values, help="repeatable; default: all scopes"
        )
        parser.add_argument(
            "--days",
            type=days,
            help=f"how long it is good for, 1 to {LONGEST_LIFE_DAYS}; default: until revoked",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"], deleted_at=None).first()
        if user is None:
            raise CommandError(f"there is no user called {options['username']}")
        life = None if options["days"] is None else timedelta(days=options["days"])
        try:
            _, plaintext = create_token(
                user, name=options["name"], scopes=options["scope"] or Scope.values, expires_in=life
            )
        except InvalidToken as error:
            raise CommandError(error.detail) from None
        self.stdout.write(plaintext)
        if told := _wide(options):
            self.stderr.write(told)


def _wide(options: dict[str, Any]) -> str:
    """What nobody asked for and the token may do all the same."""
    told = [] if options["scope"] else ["may do everything that its user may (--scope for less)"]
    told += [] if options["days"] else ["is good until it is revoked (--days for an end)"]
    return f"This token {' and '.join(told)}." if told else ""
