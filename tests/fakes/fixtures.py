"""Fixtures for tests against the fake provider; `tests/conftest.py` makes them known to every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.provider import FakeProvider


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    """A fake provider in the `box` dialect. A fault that was announced and never met fails the test."""
    with FakeProvider() as provider:
        yield provider
        assert provider.unused_faults() == []


@pytest.fixture
def fake_boat() -> Iterator[FakeProvider]:
    """The same in the `boat` dialect."""
    with FakeProvider(dialect="boat") as provider:
        yield provider
        assert provider.unused_faults() == []


@pytest.fixture
def provider(fake: FakeProvider, settings: Any) -> FakeProvider:
    """The fake provider, set as the product's provider for this test."""
    settings.BOX_API = settings.BOX_API | fake.settings
    return fake
