"""What is asked of a model, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class UserText:
    """What the model is told."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelText:
    """What the model said before."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model's. `arguments` is JSON as the model wrote it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallOutput:
    """What came of a call."""

    call_id: str
    output: str


Item = UserText | ModelText | Call | CallOutput


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that the model may call. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: the whole dialogue so far, since nothing is kept at the model's."""

    model: str
    instructions: str
    items: tuple[Item, ...]
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """The model has begun to answer."""

    response_id: str


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    delta: str


@dataclass(frozen=True, slots=True)
class CallWritten:
    """A whole tool call."""

    call_id: str
    name: str
    arguments: str
    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The model wants something done that is no call of an offered function."""

    what: str


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is complete. `usage` counts tokens, in the words of the Responses API."""

    response_id: str
    usage: Mapping[str, Any] = field(default_factory=dict)


Event = Started | Text | CallWritten | Unsupported | Done


class ModelClient(Protocol):
    """Whoever answers requests."""

    def stream(self, request: ModelRequest) -> Iterator[Event]:
        """What the model says, as it says it, up to `Done`. Raises ModelError. Leaving early ends the request."""
        ...
