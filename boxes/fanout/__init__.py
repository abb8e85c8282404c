"""Plans of several boxes: decided in one transaction, carried out by the worker, promoted fairly as places become free.

An admitted item has its reservation in the ledger from the moment it is decided; a queued one has nothing anywhere but its
place in the queue and its label. So a process that dies leaves no item between the two.
"""

from __future__ import annotations

from boxes.fanout.plans import LARGEST_COUNT, admit, cancel, cancel_all, get_request
from boxes.fanout.queue import promote_queued, put_back
from boxes.fanout.records import queue_reason

__all__ = [
    "LARGEST_COUNT",
    "admit",
    "cancel",
    "cancel_all",
    "get_request",
    "promote_queued",
    "put_back",
    "queue_reason",
]
