"""Redaction of a log that arrives in pieces."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from base.text import NUL_MARK, REPLACEMENT, decode_prefix

from . import kinds, known
from .detectors import Detector, Hit, Seen, Sequence
from .skeleton import Skeleton, is_plain, without_open_escape
from .swallow import Swallowing

_NOT_STORABLE = re.compile("[\udc80-\udcff]+|\0{1,64}")


@dataclass(frozen=True, slots=True)
class Piece:
    """Readable `text` that stands for the raw bytes from `raw_start` up to `raw_end`.

    `exact` says that the text is those very bytes, so that it may be read from any character on; another piece is a
    replacement and is read whole. A piece without text is the rest of a secret.
    """

    raw_start: int
    raw_end: int
    text: str
    exact: bool = True


@dataclass(frozen=True)
class Policy:
    """What is withheld beyond the fixed rules.

    `secrets` are values known to the installation. `is_secret_word` is asked for every URL-safe base64 word of 40 to
    100 characters. Live screens are withheld at `provider_domains`, or at every domain if none is given.
    """

    secrets: tuple[str, ...] = ()
    is_secret_word: Callable[[str], object] | None = None
    provider_domains: tuple[str, ...] = ()

    def has_no_sign_of_a_secret(self, text: str) -> bool:
        """A quick look at a complete text: nothing in it has to be looked at closely. Most texts are of this sort."""
        lowered = text.lower()
        return (
            self.is_secret_word is None
            and is_plain(text)
            and not any(map(lowered.__contains__, self._hints()))
        )

    def _hints(self) -> tuple[str, ...]:
        return _all_hints(self.secrets, self.provider_domains)

    def detectors(self) -> list[Detector]:
        """All that look for secrets; of two secrets that begin at one place the first decides."""
        words = [known.SecretWord(self.is_secret_word)] if self.is_secret_word else []
        return [*_known(self.secrets), *_fixed(self.provider_domains), *words]


def signs_of_secrets(data: bytes) -> int:
    """How often these bytes hold what a secret may be told by, or something invisible. Each has to be looked at closely,
    which takes far longer than what is between them; the count itself takes next to nothing."""
    lowered = data.lower()
    invisible = len(data) - len(data.translate(None, _INVISIBLE))
    return invisible // 8 + sum(map(lowered.count, _signs()))


@lru_cache(maxsize=1)
def _signs() -> tuple[bytes, ...]:
    return tuple(hint.encode() for hint in kinds.shortest(_all_hints((), ())))


_INVISIBLE = bytes([*range(9), *range(11, 32), 127])


@lru_cache(maxsize=8)
def _known(secrets: tuple[str, ...]) -> tuple[known.Listed, ...]:
    return tuple(known.listed(secrets))


@lru_cache(maxsize=8)
def _all_hints(secrets: tuple[str, ...], provider_domains: tuple[str, ...]) -> tuple[str, ...]:
    hints: list[tuple[str, ...]] = [detector.hints for detector in _known(secrets)]
    hints += [detector.hints for detector in _fixed(provider_domains)]
    return tuple({hint for some in hints for hint in some})


@lru_cache(maxsize=8)
def _fixed(provider_domains: tuple[str, ...]) -> tuple[Sequence, ...]:
    return (
        kinds.key_block(),
        kinds.urls(provider_domains),
        kinds.url_parameters(),
        *kinds.authorization(),
        *kinds.tokens(),
        *kinds.assignments(),
    )


@dataclass(frozen=True, slots=True)
class RedactorState:
    """Where a redactor stands between two pieces of a log; small, and JSON.

    `offset` is the raw offset of the first byte whose fate is open, `held` are the bytes received from there on. They
    may be the beginning of a secret: seal them before they are stored, or drop them (`without_held`) and read the log
    again from `offset`.
    """

    offset: int = 0
    held: bytes = field(default=b"", repr=False)
    before: str = "\n"  # stands for the last visible character: a letter, - or anything else
    swallowing: Swallowing | None = None
    after_invalid: bool = False

    def without_held(self) -> RedactorState:
        return replace(self, held=b"")

    def to_json(self) -> dict[str, object]:
        return {
            "offset": self.offset,
            "held": base64.b64encode(self.held).decode(),
            "before": self.before,
            "swallowing": [self.swallowing.name, self.swallowing.left] if self.swallowing else None,
            "after_invalid": self.after_invalid,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> RedactorState:
        """The state that `to_json` wrote; an empty mapping is the beginning of a log."""
        swallowing = stored.get("swallowing")
        return cls(
            offset=int(str(stored.get("offset", 0))),
            held=base64.b64decode(str(stored.get("held", ""))),
            before=str(stored.get("before", "\n")),
            swallowing=Swallowing(*swallowing) if isinstance(swallowing, list) else None,
            after_invalid=bool(stored.get("after_invalid", False)),
        )


class Redactor:
    """Turns raw bytes, in whatever pieces they come, into readable text that shows no part of a known secret.

    However the same bytes are cut, the texts of all pieces joined are the same, and at any time they are a beginning
    of it. Held back is only what can still become a secret, at most a few thousand characters.
    """

    def __init__(self, policy: Policy | None = None, state: RedactorState | None = None) -> None:
        self._detectors = (policy or Policy()).detectors()
        self.state = state or RedactorState()

    @property
    def received(self) -> int:
        """The raw offset after the last byte that was fed."""
        return self.state.offset + len(self.state.held)

    def feed(self, data: bytes) -> list[Piece]:
        """What became readable by these bytes, which follow those fed before."""
        return self._advance(data, final=False)

    def flush(self) -> list[Piece]:
        """The rest, at the end of the log: what is held back did not become a secret any more."""
        return self._advance(b"", final=True)

    def _advance(self, data: bytes, *, final: bool) -> list[Piece]:
        raw = self.state.held + data
        original = raw.decode("utf-8", "surrogateescape") if final else decode_prefix(raw)
        usable = len(original) if final else without_open_escape(original)
        scan = _Scan(original[:usable], self.state, self._detectors, final=final)
        scan.run()
        self.state = scan.state(held=raw[scan.offset - self.state.offset :])
        return scan.pieces


class _Scan:
    """One pass over the text that is held and new."""

    def __init__(
        self, original: str, state: RedactorState, all_detectors: list[Detector], *, final: bool
    ) -> None:
        self.pieces: list[Piece] = []
        self.offset, self.swallowing, self._after_invalid = (
            state.offset,
            state.swallowing,
            state.after_invalid,
        )
        self._final, self._is_after_hidden = final, False
        self._original, self._emitted = original, 0
        self._skeleton = Skeleton.of(original)
        self._text = state.before + self._skeleton.text  # one character of context
        self._position = 1
        self._seen = Seen(self._text)
        self._detectors = all_detectors
        self._next: list[Hit | None] = []

    def run(self) -> None:
        if self.swallowing:
            self._swallow(self.swallowing)
        if self.swallowing:
            return
        self._next = [self._find(detector) for detector in self._detectors]
        if self._position > 1:
            self._look_here()
        while hit := self._first_hit():
            if hit.end is None:
                self._show(hit.start)
                return
            self._show(hit.hidden_from)
            self._hide(hit.end, hit.mark)
            if hit.swallow:
                self._swallow(Swallowing.begin(hit.swallow))
            if self.swallowing:
                return
            self._look_here()
        self._show(len(self._text))

    def state(self, held: bytes) -> RedactorState:
        return RedactorState(self.offset, held, self._before(), self.swallowing, self._after_invalid)

    def _before(self) -> str:
        before = self._text[self._position - 1]
        if self._is_after_hidden:
            return "\n"
        if before == "-":
            return before
        return "a" if before.isascii() and (before.isalnum() or before == "_") else "\n"

    def _find(self, detector: Detector) -> Hit | None:
        return detector.find(self._text, self._position, self._seen, final=self._final)

    def _look_here(self) -> None:
        """What follows something hidden stands at the start of a word, whatever was hidden."""
        character = self._text[self._position : self._position + 1]
        if not character:
            return
        for index, detector in enumerate(self._detectors):
            if character in detector.word_starts:
                hit = detector.find_here(self._text, self._position, final=self._final)
                if hit:
                    self._next[index] = hit

    def _first_hit(self) -> Hit | None:
        """The next secret from here on; each detector looks again only once the text moved past what it had found."""
        first: Hit | None = None
        for index, hit in enumerate(self._next):
            if hit and hit.start < self._position:
                hit = self._next[index] = self._find(self._detectors[index])
            if hit and (first is None or hit.start < first.start):
                first = hit
        return first

    def _swallow(self, swallowing: Swallowing) -> None:
        end, self.swallowing = swallowing.go_on(self._text, self._position, final=self._final)
        self._hide(end, "")

    def _take(self, position: int) -> tuple[str, int]:
        """The original up to this place of the text, and the raw offset where it begins."""
        end = self._skeleton.original_index(position - 1)
        taken, start = self._original[self._emitted : end], self.offset
        self._emitted, self._position = end, position
        self.offset += len(taken) if taken.isascii() else len(taken.encode("utf-8", "surrogateescape"))
        return taken, start

    def _hide(self, position: int, mark: str) -> None:
        taken, start = self._take(position)
        if not taken:
            return
        self._is_after_hidden = True
        last = self.pieces[-1] if self.pieces else None
        if not mark and last and not last.exact and last.raw_end == start:
            self.pieces[-1] = Piece(last.raw_start, self.offset, last.text, exact=False)
        else:
            self.pieces.append(Piece(start, self.offset, mark, exact=False))
        self._after_invalid = False

    def _show(self, position: int) -> None:
        taken, start = self._take(position)
        self._is_after_hidden = self._is_after_hidden and not taken
        if taken.isascii() and "\0" not in taken:
            self._exact(taken, start)
            return
        shown = 0
        for match in _NOT_STORABLE.finditer(taken):
            start = self._exact(taken[shown : match.start()], start)
            start = self._replacement(match[0], start)
            shown = match.end()
        self._exact(taken[shown:], start)

    def _exact(self, text: str, start: int) -> int:
        if not text:
            return start
        end = start + (len(text) if text.isascii() else len(text.encode()))
        self.pieces.append(Piece(start, end, text))
        self._after_invalid = False
        return end

    def _replacement(self, characters: str, start: int) -> int:
        are_nul = characters[0] == "\0"
        mark = NUL_MARK * len(characters) if are_nul else "" if self._after_invalid else REPLACEMENT
        self.pieces.append(Piece(start, start + len(characters), mark, exact=False))
        self._after_invalid = not are_nul
        return start + len(characters)
