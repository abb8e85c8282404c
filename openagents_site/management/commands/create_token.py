"""`manage.py create_token`."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from accounts.scopes import Scope
from accounts.services import InvalidToken, create_token


class Command(BaseCommand):
    help = "Create an API token of a user and print it; it is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument(
            "--scope", action="append", choices=Scope.values, help="repeatable; default: all scopes"
        )
        parser.add_argument("--days", type=int, help="how long it is good for; default: until revoked")

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
