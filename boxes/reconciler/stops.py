"""The stop calls of a pass, several at once, without the database.

They go out in waves, the first of them alone. After a provider asked to be left alone no further wave is sent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from boxes.client import BoxClient, Gate
from boxes.errors import ProviderCode, ProviderError, RetryLater, Unknown
from boxes.stopping import StopAnswer, call_stop

AT_ONCE = 16
QUIET_SECONDS = 5.0  # how long stops are put off after a 429 that does not say how long
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StopCall:
    """What became of one stop call: the answer, or the error. Any error that is not the provider's counts as unknown."""

    answer: StopAnswer | None = None
    error: ProviderError | None = None

    @property
    def put_off_seconds(self) -> float | None:
        """For how long the provider asked to be left alone; None if it did not, or did not say for how long."""
        return self.error.retry_after_seconds if isinstance(self.error, RetryLater) else None


class Stops:
    """The stops of one pass. `ends_at` (on `time.monotonic`): after it no further wave is sent."""

    def __init__(self, provider: BoxClient, gate: Gate, *, ends_at: float) -> None:
        self._provider, self._gate, self._ends_at = provider, gate, ends_at
        self._size = 1
        self._quiet_seconds = 0.0

    @property
    def quiet_seconds(self) -> float:
        """For how long the provider is to be left alone; 0 if it may be asked."""
        return max(self._quiet_seconds, self._gate.seconds_left())

    def take(self, wanted: list[T]) -> list[T]:
        """The next of the wanted stops to ask for at once, taken from the list; none if no more may be asked for."""
        if self.quiet_seconds or time.monotonic() > self._ends_at:
            return []
        wave = wanted[: self._size]
        del wanted[: len(wave)]
        self._size = AT_ONCE if wave else self._size
        return wave

    def call(self, box_ids: Sequence[str]) -> dict[str, StopCall]:
        """Ask the provider to stop each of these boxes; what became of each."""
        if not box_ids:
            return {}
        with ThreadPoolExecutor(min(AT_ONCE, len(box_ids)), thread_name_prefix="stops") as pool:
            calls = dict(zip(box_ids, pool.map(self._call, box_ids), strict=True))
        for call in calls.values():
            self._hear(call)
        return calls

    def _call(self, box_id: str) -> StopCall:
        try:
            return StopCall(answer=call_stop(self._provider, box_id))
        except ProviderError as error:
            return StopCall(error=error)
        except Exception as error:  # one box that cannot be stopped never ends the pass
            return StopCall(error=Unknown(ProviderCode.RESPONSE_INVALID, log_detail=type(error).__name__))

    def _hear(self, call: StopCall) -> None:
        if call.error is not None and call.error.code == ProviderCode.RATE_LIMITED:
            self._quiet_seconds = max(self._quiet_seconds, call.put_off_seconds or QUIET_SECONDS)
