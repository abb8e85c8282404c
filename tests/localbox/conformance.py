"""What the tests of the vendor's SDK share: how a refusal is read, and how a box is removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.box_helpers import stop_and_remove
from ascii_box_sdk.exceptions import ApiException

MISSING = "bx_22222222"
UP = ("ready", "idle", "running")


def remove(api: BoxApi, box_id: str) -> None:
    stop_and_remove(api, box_id, delete=True)


def refusal(kind: type[ApiException], call: Callable[[], Any]) -> Any:
    """The error envelope that the SDK made of a refused call."""
    with pytest.raises(kind) as refused:
        call()
    assert refused.value.data is not None, refused.value.body
    return refused.value.data


def refused_code(kind: type[ApiException], call: Callable[[], Any]) -> str:
    """The code of a refusal, also where the SDK has no model for its status."""
    with pytest.raises(kind) as refused:
        call()
    return str(json.loads(refused.value.body)["code"])
