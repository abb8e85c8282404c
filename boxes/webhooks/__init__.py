"""What the provider tells by itself: a signed delivery makes the row due now, and it is looked at at once.

A delivery is a wake and never evidence: nothing is believed of what it says but which box to look at. Losing one costs the
time until the next pass.
"""

from __future__ import annotations

from boxes.webhooks.deliveries import accept
from boxes.webhooks.looks import LookDriver
from boxes.webhooks.signature import Delivery, Untrusted, verified

__all__ = ["Delivery", "LookDriver", "Untrusted", "accept", "verified"]
