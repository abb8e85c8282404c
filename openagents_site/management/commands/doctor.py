"""`manage.py doctor`."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from openagents_site.doctor import Finding, Level
from openagents_site.doctor.examination import examine

SIGNS = {Level.GOOD: "good", Level.WARNING: "WARN", Level.BAD: "BAD "}


class Command(BaseCommand):
    help = (
        "Look at everything the installation needs. Exit status 1 if something is bad; warnings do not count."
    )
    requires_system_checks = ()  # they are among what is looked at

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object, for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        found = examine()
        is_good = all(finding.level is not Level.BAD for finding in found)
        if options["json"]:
            self.stdout.write(
                json.dumps({"good": is_good, "findings": [asdict(finding) for finding in found]})
            )
        else:
            for finding in found:
                self.stdout.write(_line(finding))
        if not is_good:
            sys.exit(1)


def _line(finding: Finding) -> str:
    remedy = f" -> {finding.remedy}" if finding.remedy else ""
    return f"{SIGNS[finding.level]} {finding.check}: {finding.seen}{remedy}"
