"""The provider of boxes, seen from here: its calls, its answers, and what became of each."""

from __future__ import annotations

from boxes.client.box_client import PASS_TRIES, BoxClient, Deletion, client
from boxes.client.commands import CommandResult, Process
from boxes.client.costs import Usage, parse_cost_microusd, parse_usage
from boxes.client.gate import Gate
from boxes.client.listing import LISTED_STATES, Listing, Page
from boxes.client.observations import TERMINAL_STATES, ProviderBox, parse_box, unwrapped

__all__ = [
    "LISTED_STATES",
    "PASS_TRIES",
    "TERMINAL_STATES",
    "BoxClient",
    "CommandResult",
    "Deletion",
    "Gate",
    "Listing",
    "Page",
    "Process",
    "ProviderBox",
    "Usage",
    "client",
    "parse_box",
    "parse_cost_microusd",
    "parse_usage",
    "unwrapped",
]
