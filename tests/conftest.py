"""What every test may use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.db import connection
from django.test import Client, TransactionTestCase
from rest_framework.test import APIClient

from accounts import rates
from accounts.models import User
from accounts.scopes import Scope
from accounts.services import create_token, upsert_github_user
from base import wakeups
from openagents_site.launcher.checks import SYSTEM_MARK, system_files
from tests.emptying import Emptying
from tests.postgres import ensure_test_cluster, release_test_cluster
from tests.template import migrated_database

# How fast a busy machine makes up examples says nothing of the product.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`bin/test` finds the files of system tests by these words."""
    unfound = {item.path for item in items if item.get_closest_marker("system")} - {
        Path(f) for f in system_files()
    }
    if unfound:
        raise pytest.UsageError(f"without the words {SYSTEM_MARK!r} bin/test leaves out {sorted(unfound)}")


def pytest_unconfigure() -> None:
    release_test_cluster()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_blocker: Any
) -> None:
    """The test database is a copy of one that is migrated already; on a server of somebody else nothing is kept for later."""
    if not os.environ.get("TEST_DATABASE_URL"):
        with django_db_blocker.unblock():
            template = migrated_database(ensure_test_cluster())
        connection.settings_dict["TEST"] |= {"TEMPLATE": template, "MIGRATE": False}


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The test database, which each test that commits leaves as it found it."""
    with django_db_blocker.unblock():
        emptying = Emptying()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda case: emptying.after_a_test())
        yield


@pytest.fixture(autouse=True)
def nobody_listens_on() -> Iterator[None]:
    """A listening connection would keep the test database from being dropped."""
    yield
    wakeups.of_this_process.stop()


@pytest.fixture(autouse=True)
def one_minute_of_the_rate_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """However a test lies on the clock, what it counts up to a limit is counted in one window: that in which it began."""
    began = time.time() // rates.WINDOW_SECONDS * rates.WINDOW_SECONDS + 1
    monkeypatch.setattr(rates, "NOW", f"to_timestamp({began:.0f})")


@pytest.fixture
def owner(db: None) -> User:
    """A user who owns things."""
    return upsert_github_user(github_id=1, github_login="owner")


@pytest.fixture
def stranger(db: None) -> User:
    """Another user, who may see nothing of the owner's."""
    return upsert_github_user(github_id=2, github_login="stranger")


@pytest.fixture
def staff(db: None) -> User:
    return User.objects.create_superuser(username="staff", password="staff-password")


@pytest.fixture
def browser(staff: User) -> Client:
    """A superuser's, signed in."""
    client = Client()
    client.force_login(staff)
    return client


ApiOf = Callable[..., APIClient]


@pytest.fixture
def api_of(db: None) -> ApiOf:
    """`api_of(user, *scopes)` is a client that calls with a token of that user; all scopes by default."""

    def make(user: User, *scopes: str) -> APIClient:
        _, plaintext = create_token(user, scopes=scopes or Scope.values)
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {plaintext}")
        return client

    return make


@pytest.fixture
def box_api(settings: Any) -> Callable[..., None]:
    """`box_api(ttl_seconds=1)` changes settings of the provider family for this test."""

    def change(**values: Any) -> None:
        settings.BOX_API = settings.BOX_API | values

    return change
