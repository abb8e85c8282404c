"""Rows, boxes and policies as plain data, for tests of what is decided without a database."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from boxes.client import ProviderBox, parse_box
from boxes.reconciler.types import Policy, Row

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
MARKER = "oab-test-0000abcd"
BOX_ID = "bx_8bhkse3n"
POLICY = Policy(
    marker=MARKER,
    ttl_seconds=3600,
    maximum_lifetime_seconds=86_400,
    idle_timeout=timedelta(seconds=1800),
    claim_age=timedelta(seconds=90),
    noted_for=timedelta(seconds=300),
    evidence="get",
)
LIST_POLICY = replace(POLICY, evidence="list")
OUTCOMES = ("Leave", "Ask", "Note", "Stop", "End", "BackOff", "PutOff")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def row(**fields: Any) -> Row:
    """An active row of a box that was made ten minutes ago and is in use now."""
    values: dict[str, Any] = {
        "pk": uuid.uuid5(uuid.NAMESPACE_OID, str(fields)),
        "box_id": BOX_ID,
        "label": "box-1",
        "generation": 1,
        "created_at": ago(600),
        "idle_since": ago(1),
    }
    return Row(**(values | fields))


def box(state: str | None = "ready", *, name: str | None = MARKER, **fields: Any) -> ProviderBox:
    """What the provider shows of the row's box."""
    entry = {"id": BOX_ID, "state": state, "name": name, "setupStatus": "done"} | fields
    return parse_box({key: value for key, value in entry.items() if value is not None}, entry["id"])
