"""A pass that somebody asks for and waits for."""

from __future__ import annotations

import threading

from django.db import connection

from boxes.reconciler.reconcile import reconcile
from boxes.reconciler.types import PassResult


class _Pass(threading.Thread):
    """A pass in a thread of its own, with a connection of its own: it goes on when nobody waits any more."""

    def __init__(self) -> None:
        super().__init__(name="requested-pass", daemon=True)
        self.result: PassResult | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = reconcile()
        except Exception as error:
            self.error = error
        finally:
            connection.close()


def reconcile_within(seconds: float) -> PassResult | None:
    """Run a pass now; what it did, or None while it still runs after so long: it goes on by itself.

    The caller's connection is given back while it waits. Raises what the pass raised.
    """
    work = _Pass()
    connection.close()  # nothing is held while waiting
    work.start()
    work.join(seconds)
    if work.is_alive():
        return None
    if work.error is not None:
        raise work.error
    assert work.result is not None
    return work.result
