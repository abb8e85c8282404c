"""Receipts of pushes: what moved, by whom, when; each linked to the one before it, so that none can be changed in silence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from forge.models import Push, Repository
from forge.models.push import GENESIS

Changes = Mapping[str, Mapping[str, str | None]]
"""Ref -> {old, new}; None where it was made or deleted."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A receipt that is not what was written, or a ref that is not what the receipts say."""

    repository_id: UUID
    sequence: int | None
    problem: str


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, dict[str, str | None]]:
    """What moved between the two."""
    return {
        ref: {"old": before.get(ref), "new": after.get(ref)}
        for ref in sorted(before.keys() | after.keys())
        if before.get(ref) != after.get(ref)
    }


def append(
    repository: Repository,
    principal: str,
    moved: Changes,
    *,
    duration_ms: int,
    now: datetime,
    recovered: bool = False,
) -> Push:
    """Write the next receipt. Only under the repository's lock, in a transaction."""
    last = Push.objects.filter(repository=repository).order_by("-sequence").first()
    push = Push(
        repository=repository,
        sequence=0 if last is None else last.sequence + 1,
        principal=principal,
        refs={ref: dict(change) for ref, change in moved.items()},
        duration_ms=duration_ms,
        recovered=recovered,
        recorded_at=now,
        previous_link=GENESIS if last is None else bytes(last.link),
    )
    push.link = link_of(push)
    push.save(force_insert=True)
    Repository.objects.filter(pk=repository.pk).update(pushed_at=now)
    return push


def link_of(push: Push) -> bytes:
    """SHA-256 over the previous link and what the receipt says."""
    says: dict[str, Any] = {
        "repository": str(push.repository_id),
        "sequence": push.sequence,
        "principal": push.principal,
        "refs": push.refs,
        "duration_ms": push.duration_ms,
        "recovered": push.recovered,
        "recorded_at": push.recorded_at.astimezone(UTC).isoformat(timespec="microseconds"),
    }
    text = json.dumps(says, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(bytes(push.previous_link) + text.encode()).digest()


def problems(repository: Repository, refs: Mapping[str, str]) -> Iterator[Broken]:
    """What does not fit: sequences, links, and the refs on disk beside those that the receipts add up to."""
    previous, expected, told = GENESIS, 0, dict[str, str]()
    for push in Push.objects.filter(repository=repository).order_by("sequence").iterator():
        if push.sequence != expected:
            yield Broken(repository.pk, push.sequence, f"receipt {expected} is missing")
        if bytes(push.previous_link) != previous:
            yield Broken(repository.pk, push.sequence, "is not linked to the receipt before it")
        if bytes(push.link) != link_of(push):
            yield Broken(repository.pk, push.sequence, "does not say what was written")
        _apply(told, push.refs)
        previous, expected = bytes(push.link), push.sequence + 1
    for ref in changes(told, refs):
        yield Broken(repository.pk, None, f"{ref} is {refs.get(ref)}, the receipts say {told.get(ref)}")


def last_commit(repository_id: UUID, principal: str, ref: str) -> str | None:
    """Where this principal's last push left the ref; None if it never moved it."""
    pushes = Push.objects.filter(repository_id=repository_id, principal=principal, refs__has_key=ref)
    refs = pushes.order_by("-id").values_list("refs", flat=True).first()
    return None if refs is None else refs[ref]["new"]


def _apply(told: dict[str, str], moved: Changes) -> None:
    for ref, change in moved.items():
        new = change["new"]
        if new is None:
            told.pop(ref, None)
        else:
            told[ref] = new
