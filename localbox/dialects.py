"""One API, two vocabularies: the paths, nouns and code prefixes of `/api/box/v1` and of its successor `/api/v1`.

Handlers are written once, in the words of the first; a dialect translates what leaves the server. Ids, header
names and envelopes are the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    name: str
    prefix: str  # of every path
    collection: str  # path segment and list field
    noun: str  # field of one box, first word of response types, prefix of ids' field names and of codes

    @property
    def id_field(self) -> str:
        return f"{self.noun}Id"

    @property
    def size_field(self) -> str:
        return f"{self.noun}Type"

    def kind(self, kind: str) -> str:
        """The response or event type: `box.created` becomes `sandbox.created`."""
        return f"{self.noun}.{kind[4:]}" if kind.startswith("box.") else kind

    def code(self, code: str) -> str:
        """The error code: `box_starting` becomes `sandbox_starting`."""
        return f"{self.noun}_{code[4:]}" if code.startswith("box_") else code

    def event_types(self) -> dict[str, str]:
        """What a webhook may subscribe to in this dialect, each with the event it stands for."""
        return {self.kind(event): event for event in EVENTS}


EVENTS = ("box.ready", "box.error", "box.archived", "box.hydrated")

BOX = Dialect(name="box", prefix="/api/box/v1", collection="boxes", noun="box")
SANDBOX = Dialect(name="sandbox", prefix="/api/v1", collection="sandboxes", noun="sandbox")

DIALECTS = {dialect.name: dialect for dialect in (BOX, SANDBOX)}


def of_path(path: str) -> Dialect:
    """The dialect in which to answer a request, also one that no route serves."""
    for dialect in DIALECTS.values():
        if path.startswith(f"{dialect.prefix}/"):
            return dialect
    return BOX
