"""A browser without scripts, and a GitHub to come back from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from django.test import Client

from tests.fakes.github import FakeGitHub, fake_github


@pytest.fixture
def browser(db: None) -> Client:
    return Client()


@pytest.fixture
def github(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """The site is configured for a GitHub that runs here."""
    with fake_github() as running:
        settings.SIGN_IN = {
            "github_client_id": running.client_id,
            "github_client_secret": running.client_secret,
            "github_url": running.url,
        }
        for name, path in (
            ("authorize_url", "/login/oauth/authorize"),
            ("access_token_url", "/login/oauth/access_token"),
            ("profile_url", "/api/v3/user"),
        ):
            monkeypatch.setattr(GitHubOAuth2Adapter, name, running.url + path)
        yield running
