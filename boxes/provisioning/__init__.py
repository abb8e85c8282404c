"""From a reservation to a box that is ready, whatever is lost on the way.

The order is the same everywhere: the row is committed, the provider is asked with the row's key, the id is committed, the
box gets our name, that is committed. Each step is one call; whoever dies between two is followed by the next who finds the
row due.
"""

from __future__ import annotations

from boxes.provisioning.driver import ProvisioningDriver
from boxes.provisioning.steps import Next, Step, is_settled_in, next_step

__all__ = ["Next", "ProvisioningDriver", "Step", "is_settled_in", "next_step"]
