"""Entry points of the scheduler; each is safe to run at any time, twice, and at once."""

from __future__ import annotations

from boxes import budgets, fanout


def promote_fanouts() -> None:
    """Give free places to queued items. Every minute."""
    fanout.promote_queued()


def enforce_budgets() -> None:
    """Report spent budgets, and stop idle boxes where it is set so. Every minute."""
    budgets.enforce()
