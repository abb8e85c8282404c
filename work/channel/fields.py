"""Reading the body of a frame field by field. What a machine says is never trusted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from base.text import storable
from work.channel.errors import InvalidFrame


class Fields:
    """The body of a frame. Every reader raises InvalidFrame naming the field."""

    def __init__(self, body: Any) -> None:
        if not isinstance(body, Mapping):
            raise InvalidFrame(detail="a frame has a map as its body")
        self._body = body

    def uuid(self, name: str) -> UUID:
        try:
            return UUID(str(self._body.get(name)))
        except ValueError:
            raise InvalidFrame(detail=f"{name} must be a UUID") from None

    def whole(self, name: str, *, least: int = 0, most: int = 2**53, default: int | None = None) -> int:
        value = self._body.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidFrame(detail=f"{name} must be a whole number from {least} to {most}")
        return value

    def text(self, name: str, most: int, *, default: str = "") -> str:
        """A text; what is longer than `most` characters is cut, so that a talkative agent costs only words."""
        value = self._body.get(name, default)
        if value is None:
            return default
        if not isinstance(value, str):
            raise InvalidFrame(detail=f"{name} must be text")
        return storable(value)[:most]

    def exact_text(self, name: str, most: int) -> str:
        """A text that is of use only as a whole, of 1 to `most` characters."""
        value = self._body.get(name)
        if not isinstance(value, str) or storable(value) != value or not 1 <= len(value) <= most:
            raise InvalidFrame(detail=f"{name} must be text of 1 to {most} characters")
        return value

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        value = self._body.get(name)
        if not isinstance(value, str) or value not in choices:
            raise InvalidFrame(detail=f"{name} must be one of {', '.join(choices)}")
        return value

    def list_of(self, name: str, most: int) -> list[Any]:
        """A list; what is beyond `most` items is left out."""
        value = self._body.get(name, [])
        if not isinstance(value, list):
            raise InvalidFrame(detail=f"{name} must be a list")
        return value[:most]

    def map(self, name: str) -> Mapping[str, Any]:
        value = self._body.get(name)
        if not isinstance(value, Mapping):
            raise InvalidFrame(detail=f"{name} must be a map")
        return value
