"""Entry points for the scheduler."""

from __future__ import annotations

from forge import assignments, pushes, tidying


def expire_assignments() -> None:
    """End attempts that are overdue or whose run ended unheard, and write the receipts that dead processes did not."""
    assignments.expire()
    assignments.catch_up()
    pushes.settle_all_left_behind()


def tidy_repositories() -> None:
    """Join the packs that pushes leave, and remove what killed ones left."""
    tidying.tidy_all()
