"""The list of refs at the beginning of a push: packet lines up to the first flush."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from forge import limits

FLUSH = b"0000"
_LINE = re.compile(
    r"([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (refs/[^\x00-\x20\x7f~^:?*\[\\]+)"
)
_LENGTH = re.compile(rb"[0-9a-fA-F]{4}")
_SHALLOW = re.compile(r"shallow [0-9a-f]{40}([0-9a-f]{24})?")


class BadRefList(Exception):
    """This is no list of refs."""


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """What is to become of one ref. `is_rewrite` is known only once its objects are here."""

    ref: str
    old: str | None
    new: str | None
    is_rewrite: bool = False

    @property
    def is_delete(self) -> bool:
        return self.new is None


@dataclass(frozen=True, slots=True)
class RefList:
    """The updates, and the bytes that said so, which Git is to get as they came."""

    updates: tuple[RefUpdate, ...]
    raw: bytes


def read(exactly: Callable[[int], bytes]) -> RefList:
    """The list at the beginning of a body; `exactly(n)` gives its next n bytes, fewer only at its end. Raises BadRefList.

    An empty list is one: git asks with it whether it may go on.
    """
    raw = bytearray()
    updates: list[RefUpdate] = []
    while True:
        header = exactly(4)
        raw += header
        if header == FLUSH:
            return RefList(tuple(updates), bytes(raw))
        line = _payload(header, exactly)
        raw += line
        if len(raw) > limits.REF_LIST_BYTES or len(updates) >= limits.REFS_PER_PUSH:
            raise BadRefList("too many refs in one push")
        if update := _update(line, is_first=not updates):
            updates.append(update)


def of_words(kind: str, old: str, new: str, ref: str) -> RefUpdate:
    """An update in the words of the hook."""
    return RefUpdate(ref, object_id(old), object_id(new), is_rewrite=kind == "rewrite")


def object_id(text: str) -> str | None:
    """The id, None for the zero id that stands for nothing."""
    return text if text.strip("0") else None


def _payload(header: bytes, exactly: Callable[[int], bytes]) -> bytes:
    if not _LENGTH.fullmatch(header) or (length := int(header, 16)) < 5:
        raise BadRefList("the list of refs is not made of packet lines")
    line = exactly(length - 4)
    if len(line) != length - 4:
        raise BadRefList("the list of refs ends in the middle")
    return line


def _update(line: bytes, *, is_first: bool) -> RefUpdate | None:
    """The update of one line; None for a line about a shallow clone. What follows a NUL are capabilities."""
    command, nul, _ = line.partition(b"\0")
    if nul and not is_first:
        raise BadRefList("capabilities follow the first ref only")
    try:
        text = command.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise BadRefList("a ref's name is not UTF-8") from None
    if _SHALLOW.fullmatch(text):
        return None
    match = _LINE.fullmatch(text)
    if match is None or len(match[1]) != len(match[2]):
        raise BadRefList("a line of the list of refs is malformed")
    old, new = object_id(match[1]), object_id(match[2])
    if old is None and new is None:
        raise BadRefList("a ref is neither made nor deleted")
    return RefUpdate(match[3], old, new)
