"""The life of a box, as data: states, legal moves, and the sets that the rest of the provider asks about.

    provisioning --+                      +--> archived --(resume)--> provisioning
                   +--> ready --> archiving
    cloning -------+                      (a stop while starting goes to archiving too)

    provisioning, cloning --> error: it could not be started. An error box may be stopped, resumed or deleted.

Requests move a box out of a settled state (ready, archived, error); only the conductor moves it out of one in
transit (provisioning, cloning, archiving). So no two writers ever compete for the same move.
"""

from __future__ import annotations

PROVISIONING = "provisioning"  # being started: a create or a resume
CLONING = "cloning"  # being started from another box's files
READY = "ready"
ARCHIVING = "archiving"
ARCHIVED = "archived"
ERROR = "error"

STARTING = (PROVISIONING, CLONING)
TRANSIT = (*STARTING, ARCHIVING)
ACTIVE = (*STARTING, READY)  # counts against the maximum of active boxes
RESUMABLE = (ARCHIVED, ERROR)
STOPPABLE = (*STARTING, READY, ERROR)

MOVES: dict[str, tuple[str, ...]] = {
    PROVISIONING: (READY, ERROR, ARCHIVING),
    CLONING: (READY, ERROR, ARCHIVING),
    READY: (ARCHIVING,),
    ARCHIVING: (ARCHIVED,),
    ARCHIVED: (PROVISIONING, CLONING),  # cloning: a fork that was stopped before its files were there
    ERROR: (PROVISIONING, CLONING, ARCHIVING),
}

# What the API's own enum knows. A listing may ask for any of them; most never occur here.
KNOWN = frozenset(
    {"init", "provisioning", "provisioned", "cloning", "ready", "idle", "running"}
    | {"archiving", "archived", "error", "cancelled"}
)


def sources(target: str) -> tuple[str, ...]:
    """The states from which a box may move to `target`."""
    return tuple(state for state, targets in MOVES.items() if target in targets)
