"""What is withheld of structured data."""

from __future__ import annotations

import json

from base.redaction import redact_mapping
from tests.base.withheld import LONG


def test_values_of_keys_that_name_a_secret_are_withheld() -> None:
    data = {
        "apiKey": "x",
        "X-API-Key": "x",
        "sessionToken": 5,
        "Set-Cookie": ["a"],
        "private-key": {"a": 1},
        "user": "me",
    }

    assert redact_mapping(data) == {key: "[REDACTED]" for key in data if key != "user"} | {"user": "me"}


def test_texts_are_redacted_however_nested() -> None:
    data = {"a": [{"b": (f"sk-{LONG}", 1, None)}], "password": None, "token": ""}

    assert redact_mapping(data) == {"a": [{"b": ("[REDACTED]", 1, None)}], "password": None, "token": ""}


def test_listed_values_are_withheld_in_structured_data_too() -> None:
    assert redact_mapping({"note": "it is hunter2"}, secrets=["hunter2"]) == {"note": "it is [REDACTED]"}


def test_data_that_contain_themselves_end() -> None:
    data: dict[str, object] = {"name": "x"}
    data["self"] = data

    assert "[TOO_DEEP]" in json.dumps(redact_mapping(data))


def test_the_original_is_left_alone() -> None:
    data = {"password": "x", "list": ["Bearer abc"]}
    redact_mapping(data)

    assert data == {"password": "x", "list": ["Bearer abc"]}
