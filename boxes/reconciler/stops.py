"""Stop calls of a pass, several at once, without the database."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from boxes.client import BoxClient
from boxes.errors import ProviderError
from boxes.stopping import StopAnswer, call_stop

AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class StopCall:
    """What became of one stop call: the answer, or the error."""

    answer: StopAnswer | None = None
    error: Exception | None = None

    @property
    def code(self) -> str | None:
        if self.error is None:
            return None
        return str(self.error.code) if isinstance(self.error, ProviderError) else "internal_error"


def call_stops(provider: BoxClient, box_ids: Sequence[str]) -> dict[str, StopCall]:
    """Ask the provider to stop each of these boxes; what became of each."""
    if not box_ids:
        return {}
    with ThreadPoolExecutor(min(AT_ONCE, len(box_ids)), thread_name_prefix="stops") as pool:
        return dict(zip(box_ids, pool.map(lambda box_id: _call(provider, box_id), box_ids), strict=True))


def _call(provider: BoxClient, box_id: str) -> StopCall:
    try:
        return StopCall(answer=call_stop(provider, box_id))
    except Exception as error:  # one box that cannot be stopped never ends the pass
        return StopCall(error=error)
