from __future__ import annotations

from collections.abc import Iterator

import pytest
import responses

from boxes.client import BoxClient
from boxes.conf import BoxApi
from tests.fakes.fixtures import fake, fake_boat  # noqa: F401 - pytest finds fixtures by name
from tests.fakes.provider import FakeProvider

BASE = "https://box-api.internal"


@pytest.fixture
def stub() -> Iterator[responses.RequestsMock]:
    """Canned answers; one that is not asked for fails the test."""
    with responses.RequestsMock() as mock:
        yield mock


@pytest.fixture
def client() -> BoxClient:
    """A client of the stubbed provider."""
    return BoxClient(BoxApi(base_url=BASE, api_key="box-client-test", retry_delay_ms=0))


@pytest.fixture
def live(fake: FakeProvider) -> BoxClient:  # noqa: F811 - the fixture
    """A client of the fake provider, over real sockets."""
    return BoxClient(BoxApi(**fake.settings))
