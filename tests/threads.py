"""Many callers at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def all_at_once(work: Callable[[Any], Any], items: Sequence[Any], threads: int = 16) -> list[Any]:
    """Do this for every item, each thread with a connection of its own; what each returned. Raises what the first to fail raised."""

    def carried_out(item: Any) -> Any:
        try:
            return work(item)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(carried_out, items))
