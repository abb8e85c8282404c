"""The bounds of the ledger of jobs, with their units. The database checks them too."""

from __future__ import annotations

from datetime import timedelta

GOAL_BYTES = 2_000
CONTEXT_HINT_BYTES = 2_000
STEP_REF_BYTES = 256
REPORT_BYTES = 8_000
ERROR_CODE_BYTES = 128
AUTHORITY_BYTES = 32_768
BUDGET_BYTES = 4_096
DELEGATION_BYTES = 32_768
USAGE_BYTES = 16_384

AGENT_ID_BYTES = 64
CWD_BYTES = 500
MACHINE_NAME_BYTES = 256
PROMPT_BYTES = 8_000
LONGEST_DELEGATION_MS = 3_600_000
SESSION_ID_BYTES = 512

STEPS_PER_JOB = 64
"""Rows; a job makes 33 of them at most, what is above is room for what a hurt loop may still write down."""

ARGUMENT_BYTES = 262_144
RESULT_BYTES = 262_144

LEASE_SECONDS = 60
"""How long a worker that stops renewing keeps a job; one that dies loses it at once."""

CLAIMS_WITHOUT_PROGRESS = 10
"""So often a job is taken up without a step being committed in between; then it is what kills its workers."""

EQUAL_FAILURES = 5
"""So often a job may fail in the same way before it ends."""

START_RETRIES = tuple(timedelta(milliseconds=ms) for ms in (250, 500, 1_000, 2_000, 4_000, 8_000, 15_000))
"""When the start of a recovered job is tried again; after the last failure the job is interrupted."""

MACHINE_NAME_CHARACTERS = 80
PLATFORM_CHARACTERS = 40
ROOTS = 16
ROOT_BYTES = 512
PROBE_BYTES = 32_768
MACHINES_PER_OWNER = 8
TOKEN_LIFE = timedelta(seconds=2_592_000)
PAIRING_LIFE = timedelta(seconds=600)
EXPIRED_PAIRING_KEPT = timedelta(days=1)
TOKEN_BYTES_ON_THE_WIRE = 128

INCIDENT_CONTEXT_BYTES = 8_192
INCIDENT_TEXT_CHARACTERS = 500
RECURRENCE_SECONDS = 86_400
