"""Web and its few database connections: while the database restarts, and while the provider is slow."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection

from accounts.models import User
from accounts.scopes import Scope
from accounts.services import create_token
from base.embedded_postgres import Connection
from conversations.services import ensure_conversation
from tests.fakes.provider import FakeProvider
from tests.faults.installation import Api, Installation
from tests.fleet_page.conftest import make_box, make_run
from tests.localbox.server import LocalboxServer
from tests.waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Web on the test's database; no provider is asked."""
    with Installation(database_of_the_test(), LocalboxServer(port=9, state_dir=tmp_path)) as made:
        made.add_web()
        made.await_web()
        yield made


def database_of_the_test() -> Connection:
    known = connection.get_connection_params()
    return Connection(
        host=known.get("host", "localhost"),
        user=known["user"],
        dbname=known["dbname"],
        port=int(known.get("port") or 5432),
        password=known.get("password", ""),
    )


def test_no_request_meets_a_connection_that_died(installation: Installation, owner: User) -> None:
    _, token = create_token(owner)

    def status(_: int) -> int:
        return Api(installation.url, token)("GET", "runs").status_code

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(status, range(40))) == {200}
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                           " and datname = current_database()")  # fmt: skip
        assert set(pool.map(status, range(40))) == {200}


def test_who_waits_is_let_go_when_web_is_asked_to_end(installation: Installation, owner: User) -> None:
    """A poll of 25 seconds and a stream without an end: what still runs after 15 seconds is cut off without an answer."""
    run = make_run(make_box(ensure_conversation(owner), "first"), "first")
    (_, viewer), (polls, poller) = create_token(owner), create_token(owner)
    stream = Api(installation.url, viewer)("GET", f"runs/{run.pk}/stream", stream=True)

    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(Api(installation.url, poller), "GET", f"runs/{run.pk}?wait=25")
        eventually(lambda: type(polls).objects.get(pk=polls.pk).last_used_at)
        installation.parts["web"].stop()

        assert poll.result().json()["state"] == run.state
    told = stream.text
    assert "event: state" in told
    assert "event: end" not in told


OWNERS, CREATES_EACH = 3, 10  # in all more than web has database connections


def test_a_slow_provider_uses_up_no_connections(installation: Installation) -> None:
    owners = [User.objects.create_user(f"owner-{number}") for number in range(OWNERS)]
    tokens = [create_token(owner, scopes=Scope.values)[1] for owner in owners]
    creates = OWNERS * CREATES_EACH

    def create(number: int) -> int:
        api = Api(installation.url, tokens[number % OWNERS])
        return api("POST", "boxes", json={"budgeted": True}).status_code

    with (
        FakeProvider() as fake,
        fake.hold("create", times=creates) as hold,
        ThreadPoolExecutor(creates) as pool,
    ):
        started_again(installation, fake)
        statuses = pool.map(create, range(creates))
        hold.wait_until_arrived(creates)
        assert Api(installation.url, tokens[0])("GET", "boxes").json()["results"]
        hold.release()
        assert set(statuses) <= {201, 202}


def started_again(installation: Installation, fake: FakeProvider) -> None:
    """Web with another provider."""
    web = installation.parts["web"]
    web.stop()
    web.environment = {
        **web.environment,
        "BOX_API_BASE_URL": fake.settings["base_url"],
        "BOX_API_KEY": fake.settings["api_key"],
        "BOX_ESTIMATED_BURN_RATE_PER_BOX_HOUR_MICROUSD": "0",
    }
    web.ensure()
    installation.await_web()
