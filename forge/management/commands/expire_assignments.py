"""`manage.py expire_assignments`: end what is overdue, now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from forge import assignments, pushes


class Command(BaseCommand):
    help = (
        "End attempts whose deadline has passed, and those whose run ended unheard; write the receipts of pushes whose "
        "process died. Workers and the scheduler do this by themselves; it is safe to run at any time."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        expired, caught_up = assignments.expire(), assignments.catch_up()
        recovered = pushes.settle_all_left_behind()
        self.stdout.write(f"{expired} expired, {caught_up} caught up, {recovered} pushes recovered")
