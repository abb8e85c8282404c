"""What tests of the ledger's writers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.fakes.fixtures import fake, provider  # noqa: F401 - pytest finds fixtures by name

MakeBox = Callable[..., Box]


@pytest.fixture
def conversation(owner: User) -> Conversation:
    return ensure_conversation(owner)


@pytest.fixture
def other_conversation(stranger: User) -> Conversation:
    return ensure_conversation(stranger)


@pytest.fixture
def make_box(conversation: Conversation) -> MakeBox:
    """`make_box(box_id, **fields)` is a ready box of the owner's, in the ledger alone."""

    def make(box_id: str | None = "bx_8bhkse3n", **fields: Any) -> Box:
        values = {"conversation": conversation, "state": "ready", "setup_status": "done"} | fields
        return Box.objects.create(box_id=box_id, **values)

    return make
