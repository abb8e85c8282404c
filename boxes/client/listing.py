"""Reading the whole list of boxes page by page. A listing is complete or it is an error: a part proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from boxes.client.bodies import first, text
from boxes.client.dialect import MANY_BOXES
from boxes.client.observations import ProviderBox, parse_box
from boxes.errors import ProviderCode, Unknown

PAGE_SIZE = 200
MAXIMUM_PAGES = 1000

LISTED_STATES = (
    "init",
    "provisioning",
    "provisioned",
    "cloning",
    "ready",
    "idle",
    "running",
    "archiving",
    "error",
)
"""Every state but `archived`: what a pass asks for, so that old stopped boxes do not make it slower."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `next_cursor` is None at the end; `more_promised` tells whether the provider said that more follows."""

    boxes: tuple[ProviderBox, ...]
    next_cursor: str | None
    more_promised: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A complete list, each box once, in the provider's order. `repeated` counts entries that came again."""

    boxes: tuple[ProviderBox, ...]
    pages: int
    repeated: int


def parse_page(document: Mapping[str, Any]) -> Page:
    """The page of a list answer. Raises Unknown `box_response_invalid` unless every entry is a map with an id."""
    entries = next((document[name] for name in MANY_BOXES if name in document), None)
    if not isinstance(entries, list):
        raise _broken("no list of boxes")
    boxes = tuple(_entry(entry) for entry in entries)
    info = document.get("pageInfo", document.get("page_info"))
    if not isinstance(info, dict):
        return Page(boxes, None)
    cursor = text(info, "nextCursor", "next_cursor")
    has_more = first(info, "hasMore", "has_more")
    if has_more is True and not cursor:
        raise _broken("more pages but no cursor")
    if has_more is False:
        return Page(boxes, None)
    return Page(boxes, cursor or None, more_promised=has_more is True)


def read_all(page: Callable[[str | None], Page], maximum_pages: int = MAXIMUM_PAGES) -> Listing:
    """Every page from the first to the last.

    Raises what `page` raises, and Unknown `box_response_invalid` if a cursor comes again, if a promised page is empty
    or brings nothing new, or if there is no end.
    """
    found: dict[str, ProviderBox] = {}
    cursors: set[str] = set()
    current, entries, cursor = Page((), None), 0, None
    for number in range(1, maximum_pages + 1):
        previous, current = current, page(cursor)
        _check_progress(previous, current, found)
        entries += len(current.boxes)
        for box in current.boxes:
            found.setdefault(box.id, box)
        cursor = current.next_cursor
        if cursor is None or not current.boxes:
            return Listing(tuple(found.values()), number, entries - len(found))
        if cursor in cursors:
            raise _broken("a cursor came again")
        cursors.add(cursor)
    raise _broken("no last page")


def _check_progress(previous: Page, current: Page, found: Mapping[str, ProviderBox]) -> None:
    if not current.boxes:
        if previous.more_promised or current.more_promised:
            raise _broken("a promised page is empty")
    elif all(box.id in found for box in current.boxes):
        raise _broken("a page came again")


def _entry(entry: Any) -> ProviderBox:
    box_id = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(box_id, str) or not box_id:
        raise _broken("an entry without an id")
    return parse_box(entry, box_id)


def _broken(reason: str) -> Unknown:
    return Unknown(ProviderCode.RESPONSE_INVALID, log_detail=reason)
