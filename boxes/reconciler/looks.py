"""Looking at single boxes: in threads, a bounded number at once, and without the database.

The first look goes alone: a provider that wants to be left alone is asked once, not as often as there are threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from boxes.client import PASS_TRIES, BoxClient
from boxes.conf import BoxApi
from boxes.errors import ProviderCode, ProviderError, Refused, RetryLater
from boxes.reconciler.types import Deferred, Failed, Missing, Observation, Seen

log = structlog.get_logger(__name__)
HELD_AGAINST_THE_ROW = frozenset({ProviderCode.UNREACHABLE.value, ProviderCode.RATE_LIMITED.value})
QUIET_SECONDS = 5.0  # how long rows are put off after a 429 that does not say how long
OUT_OF_TIME = Failed("pass_out_of_time", counts=False)
Tick = Callable[[], object]


class Looks:
    """The looks of one pass. `ends_at` (on `time.monotonic`): after it no further box is asked about."""

    def __init__(self, provider: BoxClient, conf: BoxApi, *, ends_at: float) -> None:
        self._provider, self._concurrency = provider, conf.reconcile_concurrency
        self._seconds = conf.reconciliation_receive_timeout_ms / 1000
        self._ends_at = ends_at
        self._lock = threading.Lock()
        self._is_quiet = False

    def at(self, box_ids: Sequence[str], tick: Tick = lambda: None) -> dict[str, Observation]:
        """What was seen of each of these boxes; `tick` is called after each look, from any thread."""

        def look(box_id: str) -> Observation:
            seen = self._look(box_id)
            tick()
            return seen

        if not box_ids:
            return {}
        first = look(box_ids[0])
        if len(box_ids) == 1:
            return {box_ids[0]: first}
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="looks") as pool:
            return {box_ids[0]: first, **dict(zip(box_ids[1:], pool.map(look, box_ids[1:]), strict=True))}

    def _look(self, box_id: str) -> Observation:
        if self._is_quiet:
            return Deferred(QUIET_SECONDS)
        if time.monotonic() > self._ends_at:
            return OUT_OF_TIME
        try:
            return Seen(self._provider.get(box_id, tries=PASS_TRIES, timeout_seconds=self._seconds))
        except ProviderError as error:
            return self._unusable(error)
        except Exception:  # one look that nobody foresaw never ends the pass
            log.exception("reconcile_look_failed", box_id=box_id)
            return Failed("internal_error", counts=True)

    def _unusable(self, error: ProviderError) -> Observation:
        if isinstance(error, Refused) and error.code == ProviderCode.NOT_FOUND:
            return Missing()
        if isinstance(error, RetryLater) and error.retry_after_seconds is not None:
            return Deferred(error.retry_after_seconds)
        if error.code == ProviderCode.RATE_LIMITED and not self._is_first_to_hear():
            return Deferred(QUIET_SECONDS)
        return Failed(str(error.code), counts=error.code in HELD_AGAINST_THE_ROW)

    def _is_first_to_hear(self) -> bool:
        """Whether nobody met a bare 429 in this pass before. One row is enough to learn it, and pays for all."""
        with self._lock:
            is_first, self._is_quiet = not self._is_quiet, True
        return is_first
