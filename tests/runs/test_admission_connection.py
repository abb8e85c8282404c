"""Starting a run while the provider is slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from boxes.client import BoxClient
from runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_provider_is_asked_without_a_database_connection(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    held, get = [], BoxClient.get

    def noted(client: BoxClient, box_id: str, **options: Any) -> Any:
        held.append(connection.connection)
        return get(client, box_id, **options)

    monkeypatch.setattr(BoxClient, "get", noted)

    begin("true")

    assert held == [None]
