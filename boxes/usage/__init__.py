"""What boxes cost: settling each one after its end, and totals of what was settled.

A cost that is not known is not zero: it is missing from the sums and counted in `unsettled_boxes`.
"""

from __future__ import annotations

from boxes.usage.totals import Group, Grouping, Totals, for_conversation, for_owner, grouped, totals

__all__ = ["Group", "Grouping", "Totals", "for_conversation", "for_owner", "grouped", "totals"]
