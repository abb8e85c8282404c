"""`/healthz` and `/readyz` tell a supervisor, and people, how the installation is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.test import Client

from boxes import slots
from openagents_site.launcher.api_client import Api
from openagents_site.launcher.provision import reason, refuse_contradictions
from openagents_site.launcher.readiness import REFUSES_KEY, what_is_missing
from openagents_site.periodic import ensure_reconcile_slot
from openagents_site.schedules import install
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(box_api: Callable[..., None]) -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        box_api(**fake.settings)
        yield fake


def checks(client: Client) -> dict[str, str]:
    answer = client.get("/readyz")
    assert answer.status_code in {200, 503}
    return answer.json()["checks"]


def test_a_process_that_answers_is_alive(client: Client):
    with connection.execute_wrapper(no_database):
        assert client.get("/healthz").json() == {"status": "alive"}


def test_it_names_what_is_missing_and_what_to_do(client: Client, provider: FakeProvider):
    ensure_reconcile_slot()
    slots.ScheduleSlot.objects.all().delete()

    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    assert answer.json()["checks"] == {
        "database": "ok",
        "migrations": "ok",
        "schedules": "run manage.py setup_schedules",
        "worker": "start manage.py run_worker",
        "provider": "ok",
    }


def test_what_is_not_ready_is_one_line_of_the_log(
    client: Client, provider: FakeProvider, caplog: pytest.LogCaptureFixture
):
    assert client.get("/readyz").status_code == 503

    (line,) = caplog.records
    said = cast("dict[str, Any]", line.msg)
    assert (said["event"], said["request"], said["code"]) == ("request_finished", "GET /readyz", 503)
    assert said["not_ready"] == [
        "schedules: run manage.py setup_schedules",
        "worker: start manage.py run_worker",
    ]


def test_web_is_ready_without_a_worker_and_says_that_there_is_none(client: Client, provider: FakeProvider):
    install()
    ensure_reconcile_slot()

    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert answer.json()["checks"]["worker"] == "start manage.py run_worker"


def test_a_start_waits_for_the_worker_although_web_is_ready_without_one(
    client: Client, provider: FakeProvider, live_server: Any
):
    install()
    ensure_reconcile_slot()

    assert what_is_missing(Api(live_server.url, "")) == "worker"


def test_a_migration_that_was_not_applied_is_named(client: Client, provider: FakeProvider):
    with connection.cursor() as cursor:
        cursor.execute("delete from django_migrations where app = 'boxes' and name = '0001_initial'")

    assert checks(client)["migrations"] == "run manage.py migrate"


def test_a_provider_that_refuses_the_key_is_told_from_one_that_is_away(
    client: Client, provider: FakeProvider, box_api: Callable[..., None]
):
    provider.always("list", status=503)
    assert checks(client)["provider"] == "the box provider does not answer"

    provider.heal()
    box_api(**provider.settings | {"api_key": "another"})
    assert checks(client)["provider"] == REFUSES_KEY


def test_without_a_database_it_still_answers(client: Client, provider: FakeProvider):
    with connection.execute_wrapper(no_database):
        found = checks(client)

    assert found == {"database": "the database does not answer", "provider": "ok"}


def no_database(*_: object) -> None:
    raise OperationalError("the connection is closed")


def test_settings_that_contradict_each_other_end_a_start(settings: Any):
    refuse_contradictions()
    settings.WORK = {"model": "gpt-x"}

    with pytest.raises(ImproperlyConfigured, match="neither WORK_MODEL_API_KEY nor WORK_MODEL_BASE_URL"):
        refuse_contradictions()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ImproperlyConfigured("SECRET_KEY must be set"), "SECRET_KEY must be set"),
        (
            OperationalError("connection failed: no route\n\tIs the server running?"),
            "the database does not answer as DATABASE_URL names it: connection failed: no route",
        ),
        (KeyError("x"), "KeyError: 'x'"),
    ],
    ids=["settings", "database", "anything else"],
)
def test_why_the_database_was_not_prepared_is_one_line(error: Exception, told: str):
    assert reason(error) == told
