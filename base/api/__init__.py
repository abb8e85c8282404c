"""What every app's API shares: one shape of errors, lists and bodies, and of ids in an address."""

from __future__ import annotations

from uuid import UUID

from django.urls import register_converter


class IdConverter:
    """An id of ours in an address, `<id:run_id>`: a UUID in either case, with or without its dashes, as bodies and filters take it."""

    regex = "[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"

    def to_python(self, text: str) -> UUID:
        return UUID(text)

    def to_url(self, value: UUID | str) -> str:
        return str(value)


register_converter(IdConverter, "id")
