"""A step that takes a while: that it began, that it moves, how it ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

MOVING_SECONDS, PLAIN_SECONDS = 0.5, 10.0


class Screen(Protocol):
    """Where it is shown. `moves`: whether a line can be written over."""

    @property
    def moves(self) -> bool: ...

    def say(self, text: str, style: str = "") -> None: ...

    def move(self, text: str) -> None:
        """Show the line in place of the one that moved last; the next `say` takes it away."""


class Progress:
    """Says how long it lasts while it lasts: twice a second on one line of a terminal, else in a line every ten seconds."""

    def __init__(
        self,
        what: str,
        screen: Screen,
        is_interrupted: Callable[[], bool] = lambda: False,
        plain_seconds: float = PLAIN_SECONDS,
    ) -> None:
        self.what = what
        self.note = ""  # what it is at; shown with the next tick
        self._screen = screen
        self._is_interrupted = is_interrupted
        self._pause = MOVING_SECONDS if screen.moves else plain_seconds
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._ticking = threading.Thread(target=self._tick_always, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._screen.say(f"{self.what} ...", "dim")
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        outcome, style = ("ready", "green") if kind is None else ("failed", "red")
        if self._is_interrupted():
            outcome, style = "interrupted", "yellow"
        self._screen.say(f"{self.what}: {outcome} after {self.seconds:.1f} s", style)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def start(self) -> None:
        """Show it from now on."""
        if self._screen.moves:
            self.tick()
        self._ticking.start()

    def stop(self) -> None:
        """Nothing is shown from now on."""
        self._ended.set()
        self._ticking.join()

    def tick(self) -> None:
        """Show what it is at."""
        note = f": {self.note}" if self.note else ""
        text = f"{self.what}{note} ({self.seconds:.0f} s)"
        if self._screen.moves:
            self._screen.move(text)
        else:
            self._screen.say(f"  {text}", "dim")

    def _tick_always(self) -> None:
        while not self._ended.wait(self._pause):
            self.tick()
