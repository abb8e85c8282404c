"""Asking a model. A client takes one request and yields what the model says, event by event; it never touches the
database, and keeps nothing between two requests."""

from __future__ import annotations

from functools import lru_cache

from work.conf import ECHO, WorkSettings, work_settings
from work.model_client.echo import EchoClient
from work.model_client.errors import ModelError, Trouble
from work.model_client.types import (
    Call,
    CallOutput,
    CallWritten,
    Done,
    Event,
    Item,
    ModelClient,
    ModelRequest,
    ModelText,
    Offer,
    Started,
    Text,
    Unsupported,
    UserText,
)

__all__ = [
    "Call",
    "CallOutput",
    "CallWritten",
    "Done",
    "Event",
    "Item",
    "ModelClient",
    "ModelError",
    "ModelRequest",
    "ModelText",
    "Offer",
    "Started",
    "Text",
    "Trouble",
    "Unsupported",
    "UserText",
    "model_client",
]


def model_client() -> ModelClient:
    """The client that the settings name. The same one while they stay the same: it keeps connections open."""
    return _client(work_settings())


@lru_cache(maxsize=4)
def _client(conf: WorkSettings) -> ModelClient:
    if conf.model == ECHO:
        return EchoClient()
    from work.model_client.responses_client import (
        ResponsesClient,
    )  # a second of imports that echo does not need

    return ResponsesClient(
        api_key=conf.model_api_key,
        base_url=conf.model_base_url,
        connect_seconds=conf.model_connect_timeout_ms / 1000,
        silence_seconds=conf.model_silence_timeout_ms / 1000,
    )
