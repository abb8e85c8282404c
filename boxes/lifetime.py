"""When a box is stopped at the latest, and which rule says so. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class EndRule(StrEnum):
    """Why a lease ends when it does."""

    TTL = "ttl"
    EXTENDED = "extended"
    MAXIMUM_LIFETIME = "maximum_lifetime"


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """The end of a lease and the rule that set it."""

    at: datetime
    because: EndRule


def lease_end(
    created_at: datetime,
    extended_until: datetime | None,
    *,
    ttl_seconds: int,
    maximum_lifetime_seconds: int,
) -> LeaseEnd:
    """The later of creation plus `ttl_seconds` and `extended_until`, but not after the hard end of `latest_end`."""
    ordinary = created_at + timedelta(seconds=ttl_seconds)
    if extended_until is None or extended_until <= ordinary:
        return LeaseEnd(ordinary, EndRule.TTL)
    latest = latest_end(
        created_at, ttl_seconds=ttl_seconds, maximum_lifetime_seconds=maximum_lifetime_seconds
    )
    if extended_until < latest:
        return LeaseEnd(extended_until, EndRule.EXTENDED)
    return LeaseEnd(latest, EndRule.MAXIMUM_LIFETIME)


def latest_end(created_at: datetime, *, ttl_seconds: int, maximum_lifetime_seconds: int) -> datetime:
    """Beyond this nobody can extend. The maximum never shortens what the TTL gives."""
    return created_at + timedelta(seconds=max(ttl_seconds, maximum_lifetime_seconds))
