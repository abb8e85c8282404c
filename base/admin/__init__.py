"""What the staff pages of every app share.

They show the ledger and change it through services alone: a page is read-only, and what may be done is an `Action` that
asks, checks a permission, is logged, and says of each row what became of it. Lists stay fast beside a million rows: they
count no further than they show, sort by indexed columns alone, and search by exact values and prefixes.
"""

from __future__ import annotations

from base.admin.actions import Action, Outcome, already, done
from base.admin.cells import age, link_to, money, seconds_between, short, span
from base.admin.columns import link_column, money_column, span_column, state_column
from base.admin.inlines import ReadOnlyInline
from base.admin.pages import ReadOnlyAdmin, StaffAdmin
from base.admin.related import relate, related_to

__all__ = [
    "Action",
    "Outcome",
    "ReadOnlyAdmin",
    "ReadOnlyInline",
    "StaffAdmin",
    "age",
    "already",
    "done",
    "link_column",
    "link_to",
    "money",
    "money_column",
    "relate",
    "related_to",
    "seconds_between",
    "short",
    "span",
    "span_column",
    "state_column",
]
