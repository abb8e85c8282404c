"""Servers for the tests of this folder. Other suites take LocalboxServer from `tests.localbox.server`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.models.box import Box

from localbox import runtime
from tests.localbox.client import ready_box, sdk
from tests.localbox.conformance import remove
from tests.localbox.server import LocalboxServer


def sandboxes_here() -> list[str]:
    """The sandboxes that this machine can run; a conformance test runs once in each."""
    best = runtime.choose("auto").name
    return ["plain"] if best == "plain" else ["plain", best]


@pytest.fixture(scope="session")
def localbox_server() -> Iterator[LocalboxServer]:
    """One real server for the whole session. Tests share it: make your own boxes, and expect those of others."""
    with LocalboxServer() as server:
        yield server


@pytest.fixture(scope="session", params=sandboxes_here())
def each_server(request: pytest.FixtureRequest) -> Iterator[LocalboxServer]:
    """A server of each sandbox in turn, with webhooks to this machine allowed."""
    with LocalboxServer(sandbox=request.param, settings={"loopback_webhooks": "1"}) as server:
        yield server


@pytest.fixture
def own_server() -> Iterator[LocalboxServer]:
    """A server that a test may kill, with nothing in it. Not started yet."""
    server = LocalboxServer(settings={"loopback_webhooks": "1"})
    yield server
    server.close()


@pytest.fixture
def api(each_server: LocalboxServer) -> BoxApi:
    return sdk(each_server)


@pytest.fixture
def box(api: BoxApi) -> Iterator[Box]:
    made = ready_box(api)
    yield made
    remove(api, made.id)
