"""Delegations: work that is done by an agent on its owner's own machine."""

from __future__ import annotations

from work.delegations.selectors import describe
from work.delegations.starting import ask_machine, check_known, start_delegation

__all__ = ["ask_machine", "check_known", "describe", "start_delegation"]
