"""The API's description and the running server say the same."""

from __future__ import annotations

import pytest

from tests.contract import tour
from tests.contract.exchange import Exchange
from tests.contract.installation import Running

pytestmark = [pytest.mark.system, pytest.mark.django_db, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def exchanges(server: Running) -> dict[str, Exchange]:
    return tour.take(server)


def test_the_tour_goes_through_every_operation(server: Running, exchanges: dict[str, Exchange]) -> None:
    described = {
        f"{method.upper()} {path}"
        for path, operations in server.description()["paths"].items()
        for method in operations
    }

    assert set(exchanges) == described
