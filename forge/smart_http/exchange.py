"""One push between a client and Git: the body goes in, the hook asks, the server says whether refs may move."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from django.http import HttpResponse, HttpResponseBase

from forge.conf import forge_settings
from forge.models import Repository
from forge.smart_http import ref_list
from forge.smart_http.backend import Backend, BadAnswer, Call, Timeout, split_head
from forge.smart_http.fetching import with_head
from forge.smart_http.ref_list import RefUpdate

LARGEST_ANSWER = 16 * 1024 * 1024
MOVING_SECONDS = 30.0
"""How long Git may take to move refs once it may: a few files. The repository is locked for that long."""


class Exchange:
    """Runs Git's side of one push. Leaving the context ends it; unless it was allowed, no ref moves any more then."""

    def __init__(
        self,
        repository: Repository,
        call: Call,
        pieces: Callable[[], bytes],
        *,
        seconds: float,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._asked, self._said, self._output = bytearray(), None, bytearray()
        self.broken: Exception | None = None
        self._is_allowed = False
        self._updates, updates_in = os.pipe()
        verdict_out, self._verdict = os.pipe()
        try:
            names = {"OA_UPDATES_FD": str(updates_in), "OA_VERDICT_FD": str(verdict_out)}
            self.backend = Backend(
                repository,
                call,
                seconds=seconds,
                pass_fds=(updates_in, verdict_out),
                more=names,
                memory_bytes=forge_settings().push_memory_bytes,
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(updates_in)  # only Git holds them now: when it ends, what is here ends too
            os.close(verdict_out)
        self.backend.feed(pieces, self._break, stop)

    def until_asked(self) -> list[RefUpdate] | None:
        """What the hook asks for; None if Git ended without asking, since there was nothing to do or it would not do it.

        Raises what the body raised, and Timeout.
        """
        while True:
            ready = self.backend.wait_for(self.backend.output, self._updates)
            if self._updates in ready:
                piece = os.read(self._updates, 65536)
                self._asked += piece
                if self._asked.endswith(b"\n.\n") or self._asked == b".\n":
                    return _updates(bytes(self._asked))
                if not piece:
                    self.until_end()
                    return None
            elif not self._read_output():
                self._raise_broken()
                return None

    def allow(self) -> None:
        """Refs may move. From here on the push cannot be called back, also if the client goes away: Git has all it needs."""
        self._is_allowed = True
        self.backend.shorten(MOVING_SECONDS)
        os.write(self._verdict, b"ok\n")

    def refuse(self, reasons: Sequence[str]) -> None:
        """No ref moves; the client is told why."""
        lines = [f"refused: {_one_line(reason)}" for reason in reasons[:20]]
        with suppress(BrokenPipeError):
            os.write(self._verdict, "".join(f"{line}\n" for line in [*lines, "."]).encode())

    def until_end(self) -> None:
        """Read what Git still says, to its end. Raises Timeout and, before refs were allowed to move, what the body raised."""
        while self._read_output():
            continue
        self.backend.end()
        if not self._is_allowed:
            self._raise_broken()

    def response(self) -> HttpResponseBase:
        """Git's answer, all of it. Raises BadAnswer."""
        found = split_head(bytes(self._output))
        if found is None:
            raise BadAnswer
        head, content = found
        return with_head(HttpResponse(content), head)

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()  # a hook that waits for the verdict reads the end of it, which is a no
        self.backend.__exit__()

    def _read_output(self) -> bool:
        piece = self.backend.read()
        self._output += piece
        if len(self._output) > LARGEST_ANSWER:
            raise BadAnswer
        return bool(piece)

    def _break(self, error: Exception) -> None:
        self.broken = error
        if not self._is_allowed:
            self.backend.kill()

    def _raise_broken(self) -> None:
        if self.broken is not None:
            raise self.broken

    def _close(self) -> None:
        for descriptor in (self._updates, self._verdict):
            with suppress(OSError):
                os.close(descriptor)


def _updates(said: bytes) -> list[RefUpdate]:
    # Not by splitlines: a ref's name may hold what Unicode calls the end of a line, but no line feed.
    lines = said.decode("utf-8", "surrogateescape").split("\n")[:-2]
    return [ref_list.of_words(*line.split(" ", 3)) for line in lines]


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)[:300]


__all__ = ["BadAnswer", "Exchange", "Timeout"]
