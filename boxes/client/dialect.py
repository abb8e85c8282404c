"""The provider's vocabularies as data: what `BOX_API_DIALECT` chooses.

Only what we send differs. Answers are read in the words of both dialects, whichever is chosen, and every code is turned
into the words of `box` before it is compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from boxes.errors import ProviderCode, Refused


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one version of the API names things. `collection` is the path of all boxes."""

    name: str
    collection: str

    def path(self, box_id: str | None = None, *rest: str) -> str:
        """The path of all boxes, of one, or of something below one. Raises Refused for an id that is no path segment."""
        parts = [self.collection] if box_id is None else [self.collection, checked_id(box_id), *rest]
        return "/" + "/".join(parts)


DIALECTS: Mapping[str, Dialect] = {
    "box": Dialect("box", "boxes"),
    "boat": Dialect("boat", "sandboxes"),
}

ONE_BOX = ("box", "sandbox", "data")
MANY_BOXES = ("boxes", "sandboxes", "data")
CREATED_ID = ("id", "boxId", "sandboxId")

_FOREIGN_PREFIX = re.compile(r"^(sandbox|boat)_")
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_SAFE_ID = re.compile(r"[A-Za-z0-9_.~:@=+-]{1,255}", re.ASCII)


def canonical_code(value: object) -> str | None:
    """A code of the provider in the words of `box`; None for what does not look like a code."""
    if not isinstance(value, str) or not _CODE.fullmatch(value):
        return None
    return _FOREIGN_PREFIX.sub("box_", value.lower())


def checked_id(box_id: str) -> str:
    """The id, if it can stand in a path as it is. Its look is the provider's business; only its safety is ours.

    Raises Refused `box_malformed_id`, which never means that the box is gone.
    """
    if not _SAFE_ID.fullmatch(box_id) or box_id in {".", ".."}:
        raise Refused(ProviderCode.MALFORMED_ID, log_detail="id is not a path segment")
    return box_id
