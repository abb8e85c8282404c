"""`manage.py verify_receipts`: whether receipts of pushes are what was written, and refs what the receipts say."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from base.amounts import counted
from forge import git, pushes, receipts
from forge.importing import shown
from forge.management.finding import repositories_called
from forge.models import Push, Repository


class Command(BaseCommand):
    help = (
        "Recompute the chain of receipts of each repository and compare what it adds up to with the refs on disk. "
        "Exit status 1 if something does not fit."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("repository", nargs="*", metavar="OWNER/NAME", help="default: all")
        parser.add_argument("--json", action="store_true", help="one JSON object a problem")

    def handle(self, *args: Any, repository: list[str], **options: Any) -> None:
        bad = sum(self._verify(one, as_json=options["json"]) for one in repositories_called(repository))
        if bad:
            sys.exit(1)

    def _verify(self, repository: Repository, *, as_json: bool) -> int:
        pushes.settle_left_behind(repository.pk)
        path = git.path_of(repository.storage_key)
        if not git.works(repository.storage_key):
            found = [receipts.Broken(repository.pk, None, "is not on disk")]
        else:
            found = list(receipts.problems(repository, shown(git.refs(path))))
        for one in found:
            where = "" if one.sequence is None else f" receipt {one.sequence}:"
            line = {"repository": str(repository), "sequence": one.sequence, "problem": one.problem}
            self.stdout.write(json.dumps(line) if as_json else f"{repository}:{where} {one.problem}")
        if not as_json and not found:
            count = Push.objects.filter(repository=repository).count()
            self.stdout.write(f"{repository}: {counted(count, 'receipt')}, all in order")
        return len(found)
