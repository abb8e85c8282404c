"""The bounds of the forge, with their units. The database checks them too."""

from __future__ import annotations

REPOSITORY_NAME_CHARACTERS = 64
DESCRIPTION_CHARACTERS = 350
BRANCH_BYTES = 255
PROTECTED_BRANCHES = 100

TITLE_CHARACTERS = 256
BODY_BYTES = 65_536
LABELS = 20
LABEL_CHARACTERS = 50

REASON_CHARACTERS = 128
OBJECTIVE_BODY_BYTES = 6_000
"""How much of an issue's body an agent is shown."""

SHORT_WALL_CLOCK_SECONDS = 900
LONG_WALL_CLOCK_SECONDS = 3_600
"""How long an attempt may take: the long one for an issue that says problem, scope, acceptance criteria and success metrics."""

CREDENTIAL_BYTES_ON_THE_WIRE = 240
SECRET_BYTES = 32

REFS_PER_PUSH = 5_000
REF_LIST_BYTES = 2 * 1024 * 1024
"""How long the list of refs at the beginning of a push may be."""

CLOSING_COMMITS = 200
"""How many new commits of one push are read for words that close issues."""

PUSHES_SHOWN = 100
