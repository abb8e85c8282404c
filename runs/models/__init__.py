"""The ledger of runs and their logs."""

from runs.models.log import RunLogChunk
from runs.models.run import Run

__all__ = ["Run", "RunLogChunk"]
