"""Starting a run while the provider is slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from base import connections, http
from runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_provider_is_asked_without_a_database_connection(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is where connections come from a pool; the tests have none."""
    held, call = [], http.call

    def noted(method: str, url: str, **options: Any) -> http.Reply:
        held.append(connection.connection)
        return call(method, url, **options)

    monkeypatch.setattr(connections, "release_to_pool", connections.release)
    monkeypatch.setattr(http, "call", noted)

    begin("true")

    assert held == [None]
