"""What a machine says of itself, checked. Pure."""

from __future__ import annotations

from typing import Any

from work import limits
from work.errors import PairingInvalid
from work.states import MachineTier


def check(name: Any, tier: Any, platform: Any, agent_version: Any, roots: Any) -> None:
    """Raises PairingInvalid with what is wrong by field."""
    wrong: dict[str, list[str]] = {}
    if not _is_text(name, limits.MACHINE_NAME_CHARACTERS) or not name.strip():
        wrong["name"] = [f"must be text of 1 to {limits.MACHINE_NAME_CHARACTERS} characters"]
    if tier not in MachineTier.values:
        wrong["tier"] = [f"must be one of {', '.join(MachineTier.values)}"]
    for field, value in (("platform", platform), ("agent_version", agent_version)):
        if not _is_text(value, limits.PLATFORM_CHARACTERS):
            wrong[field] = [f"must be text of at most {limits.PLATFORM_CHARACTERS} characters"]
    if not isinstance(roots, list) or len(roots) > limits.ROOTS or not all(_is_root(root) for root in roots):
        wrong["roots"] = [
            f"must be a list of at most {limits.ROOTS} folders of 1 to {limits.ROOT_BYTES} bytes"
        ]
    if wrong:
        raise PairingInvalid(wrong)


def _is_text(value: Any, characters: int) -> bool:
    return isinstance(value, str) and len(value) <= characters and is_storable(value)


def _is_root(value: Any) -> bool:
    return isinstance(value, str) and is_storable(value) and 1 <= len(value.encode()) <= limits.ROOT_BYTES


def is_storable(text: str) -> bool:
    """Whether the database takes the text: neither NUL nor half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
