"""What the worker's pump drives: runs that are due, one provider command a step."""

from __future__ import annotations

from runs.driver.driver import RunDriver
from runs.driver.task import Task

__all__ = ["RunDriver", "Task"]
