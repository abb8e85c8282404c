"""Query parameters that several views read: `wait`, `all`, whole numbers."""

from __future__ import annotations

from uuid import UUID

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

LONGEST_WAIT_SECONDS = 25
ALL = "all"


def wait_seconds(request: Request) -> int:
    """How long the caller is willing to wait for news: 0 to 25 s."""
    return whole_number(request, "wait", default=0, maximum=LONGEST_WAIT_SECONDS)


def whole_number(
    request: Request,
    name: str,
    *,
    default: int,
    maximum: int,
    minimum: int = 0,
    code: str = "invalid_request",
) -> int:
    """A query parameter as a whole number from `minimum` to `maximum`. Raises ValidationError with `code`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or not minimum <= int(text) <= maximum:
        raise ValidationError({name: [f"must be a whole number from {minimum} to {maximum}"]}, code=code)
    return int(text)


def id_named(request: Request, name: str) -> UUID | None:
    """A query parameter as an id; None if it is not there. Raises ValidationError."""
    text = request.query_params.get(name)
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise ValidationError({name: ["must be a UUID"]}) from None


def all_owners(request: Request) -> bool:
    """Whether staff asked for everybody's objects; others see their own whatever they ask."""
    return bool(request.user.is_staff) and truth(request.query_params.get(ALL, "")) is True


def truth(text: str) -> bool | None:
    """What a query parameter says; None for what says neither yes nor no."""
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
