"""What is said of settings that do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from openagents_site.doctor import Level, host
from openagents_site.sign_in.checks import github_settings


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"github_client_id": "x"}, "GITHUB_CLIENT_SECRET"),
        ({"github_client_secret": "x"}, "GITHUB_CLIENT_ID"),
    ],
)
def test_half_of_github_is_an_error(settings: Any, values: dict[str, str], missing: str) -> None:
    settings.SIGN_IN = values

    (found,) = github_settings(None)

    assert found.id == "sign_in.E001"
    assert missing in found.msg
    assert [finding.level for finding in host.settings_are_sound()] == [Level.BAD]


def test_both_or_neither_is_fine(settings: Any) -> None:
    for values in ({}, {"github_client_id": "x", "github_client_secret": "y"}):
        settings.SIGN_IN = values
        assert github_settings(None) == []


def test_an_address_that_is_none_is_an_error(settings: Any) -> None:
    settings.SIGN_IN = {"github_url": "github.com"}

    assert [found.id for found in github_settings(None)] == ["sign_in.E002"]
