"""Reconciliation: the ledger and the provider are brought to agree, in one direction.

A good answer may move a row towards its end. Errors, timeouts and rate limits move nothing; they only say when to look
again. Nothing is ever revived or replaced.
"""

from __future__ import annotations

from boxes.reconciler.reconcile import plan, reconcile
from boxes.reconciler.types import PassResult

__all__ = ["PassResult", "plan", "reconcile"]
