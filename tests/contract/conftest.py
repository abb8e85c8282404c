"""One running installation for all tests of this folder that a process runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.installation import Running, database_of_this_process, running


@pytest.fixture(scope="session")
def server(django_db_setup: None, django_db_blocker: Any) -> Iterator[Running]:
    with django_db_blocker.unblock():
        template = database_of_this_process()
    with running(template) as made:
        yield made
