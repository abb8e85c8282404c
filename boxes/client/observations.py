"""What the provider says of a box, read so that no odd field can stop us."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from boxes.client.bodies import first, text
from boxes.client.costs import parse_cost_microusd
from boxes.client.dialect import ONE_BOX
from boxes.states import UP, BoxState, SetupStatus

TERMINAL_STATES = frozenset({"archived", "stopped", "terminated", "deleted", "error", "cancelled"})
"""States, in the provider's words, from which a box does not come back by itself."""

FOREIGN_STATES: Mapping[str, BoxState] = {
    "stopping": BoxState.ARCHIVING,
    "stopped": BoxState.ARCHIVED,
    "terminated": BoxState.ARCHIVED,
    "deleted": BoxState.ARCHIVED,
    "cancelled": BoxState.ERROR,
    "securing": BoxState.PROVISIONING,
}
"""States of other versions of the API, and what they are for us."""

_STATES: dict[str | None, BoxState] = {state.value: state for state in BoxState}
_STATES.update(FOREIGN_STATES.items())
_SETUP_STATUSES: Mapping[str | None, SetupStatus] = {status.value: status for status in SetupStatus}

SECRET_FIELDS = frozenset({"desktopUrl", "desktop_url", "_token", "token", "secret"})
CLOCK_DIFFERENCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ProviderBox:
    """One box as the provider shows it.

    `state` and `setup_status` are ours: an unknown state reads as `provisioning` (not usable yet, may bill), a setup
    status that is missing or unknown as `pending`; `raw_state` and `raw_setup_status` are the provider's words. A field
    that is missing or cannot be read is None. `raw` is the provider's entry, storable as JSON, without its secrets.
    """

    id: str
    name: str | None
    state: BoxState
    raw_state: str | None
    setup_status: SetupStatus
    raw_setup_status: str | None
    setup_error: str | None
    created_at: datetime | None
    archive_after: datetime | None
    cost_microusd: int | None
    raw: Mapping[str, Any]

    @property
    def is_terminal(self) -> bool:
        """Whether the provider has ended the box."""
        return self.raw_state in TERMINAL_STATES

    @property
    def is_up(self) -> bool:
        return self.state in UP

    @property
    def is_known_state(self) -> bool:
        """False for a state that the product has no word for; the box is then neither gone nor ready."""
        return self.raw_state in _STATES

    @property
    def is_setup_ended(self) -> bool:
        """Whether nothing is left to set up; true also for a box that was made without a setup script."""
        return self.raw_setup_status in (None, "done", "failed")

    def is_named(self, name: str) -> bool:
        """Whether the box carries exactly this name, as a box of ours carries the ownership marker."""
        return self.name == name

    def age(self, now: datetime) -> timedelta | None:
        """Time since its creation; None if that is not said, or said to be in the future."""
        if self.created_at is None or self.created_at > now + CLOCK_DIFFERENCE:
            return None
        return max(now - self.created_at, timedelta(0))


def unwrapped(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The box within an answer about one box, or the answer itself where it is the bare box."""
    return next((document[name] for name in ONE_BOX if isinstance(document.get(name), dict)), document)


def parse_box(entry: Mapping[str, Any], box_id: str) -> ProviderBox:
    """The box of an unwrapped entry."""
    raw_state = _word(text(entry, "state") or text(entry, "status"))
    raw_setup = _word(text(entry, "setupStatus", "setup_status"))
    return ProviderBox(
        id=box_id,
        name=text(entry, "name"),
        state=_STATES.get(raw_state, BoxState.PROVISIONING),
        raw_state=raw_state,
        setup_status=_SETUP_STATUSES.get(raw_setup, SetupStatus.PENDING),
        raw_setup_status=raw_setup,
        setup_error=text(entry, "setupError", "setup_error"),
        created_at=_moment(first(entry, "createdAt", "created_at")),
        archive_after=_moment(first(entry, "archiveAfter", "archive_after")),
        cost_microusd=parse_cost_microusd(entry),
        raw={
            name: "[REDACTED]" if name in SECRET_FIELDS and value else value for name, value in entry.items()
        },
    )


def _word(value: str | None) -> str | None:
    return value.strip().lower()[:64] or None if value else None


def _moment(value: Any) -> datetime | None:
    """An instant in UTC, from ISO 8601 or from seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
