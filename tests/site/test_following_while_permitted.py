"""Who follows a run, or waits for news of it, is told nothing more when what they showed opens nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import ApiToken, User
from accounts.services import revoke_token
from base import wakeups
from boxes.models import Box
from conversations.services import ensure_conversation
from runs import streaming
from runs.models import Run
from runs.services import finish, record_poll

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "PERMITTED_SECONDS", 0.0)


@pytest.fixture
def run(owner: User) -> Run:
    conversation = ensure_conversation(owner)
    box = Box.objects.create(
        conversation=conversation, box_id="bx_8bhkse3n", state="ready", setup_status="done"
    )
    now = timezone.now()
    return Run.objects.create(
        conversation=conversation, conversation_box=box, requesting_principal={}, command="true", idempotency_key="key",
        run_directory="/tmp/x", admitted_at=now, deadline_at=now + timedelta(minutes=10),
    )  # fmt: skip


def following(client: Any, run: Run, query: str = "") -> Iterator[bytes]:
    """The events after the first, which tells where the run stands."""
    events: Iterator[bytes] = client.get(f"/api/v1/runs/{run.pk}/stream{query}").streaming_content
    assert next(events).startswith(b"retry:")
    assert b"event: state" in next(events)
    return events


def told_of_the_rest(events: Iterator[bytes], run: Run) -> str:
    """What is told of output that comes now, and of the end."""
    record_poll(run.pk, {"present": True, "log_size": 4, "output": "word"})
    finish(run.pk, "completed", 0)
    return b"".join(events).decode()


def revoked(user: User) -> None:
    revoke_token(ApiToken.objects.get(user=user))


def expired(user: User) -> None:
    ApiToken.objects.filter(user=user).update(expiry=timezone.now())


def closed(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize("end", [revoked, expired, closed])
def test_a_token_that_ends_is_told_nothing_more(
    end: Callable[[User], None], run: Run, api_of: Any, owner: User
) -> None:
    events = following(api_of(owner), run)

    end(owner)

    assert told_of_the_rest(events, run) == ""


def test_a_token_that_lives_is_told_all(run: Run, api_of: Any, owner: User) -> None:

    told = told_of_the_rest(following(api_of(owner), run), run)

    assert "word" in told
    assert "event: end" in told


@pytest.mark.parametrize("end", ["signed out", "another password", "closed", None])
def test_a_session_that_ends_is_told_nothing_more(end: str | None, run: Run, owner: User) -> None:
    client = Client()
    client.force_login(owner, "django.contrib.auth.backends.ModelBackend")
    events = following(client, run)

    if end == "signed out":
        client.logout()
    if end == "another password":
        owner.set_password("another")
        owner.save()
    if end == "closed":
        closed(owner)

    assert ("word" in told_of_the_rest(events, run)) == (end is None)


def test_who_is_no_longer_staff_is_told_nothing_more_of_others(run: Run, api_of: Any, staff: User) -> None:
    events = following(api_of(staff), run, "?all=true")

    User.objects.filter(pk=staff.pk).update(is_staff=False)

    assert told_of_the_rest(events, run) == ""


WAITS = ["/api/v1/runs/{}?wait=25", "/api/v1/runs/{}/output?wait=25"]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """What happens while somebody waits."""

    def happens(what: Callable[[], object]) -> None:
        def wait(key: str, met: Callable[[], bool], *, seconds: float) -> bool:
            what()
            return met()

        monkeypatch.setattr(wakeups, "wait_until", wait)

    return happens


@pytest.mark.parametrize("path", WAITS)
@pytest.mark.parametrize("end", [revoked, expired, closed])
def test_a_token_that_ends_waits_for_nothing(
    path: str, end: Callable[[User], None], run: Run, api_of: Any, owner: User, meanwhile: Any
) -> None:
    meanwhile(lambda: end(owner))

    answer = api_of(owner).get(path.format(run.pk))

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_token")


@pytest.mark.parametrize("path", WAITS)
def test_a_session_that_ends_waits_for_nothing(path: str, run: Run, owner: User, meanwhile: Any) -> None:
    client = Client()
    client.force_login(owner, "django.contrib.auth.backends.ModelBackend")
    meanwhile(client.logout)

    assert client.get(path.format(run.pk)).status_code == 401


@pytest.mark.parametrize("path", WAITS)
def test_who_is_no_longer_staff_waits_for_nothing_of_others(
    path: str, run: Run, api_of: Any, staff: User, meanwhile: Any
) -> None:
    meanwhile(lambda: User.objects.filter(pk=staff.pk).update(is_staff=False))

    assert api_of(staff).get(path.format(run.pk) + "&all=true").status_code in {403, 404}


@pytest.mark.parametrize("path", WAITS)
def test_who_still_may_is_told_the_news(
    path: str, run: Run, api_of: Any, owner: User, meanwhile: Any
) -> None:
    meanwhile(lambda: finish(run.pk, "completed", 0))

    assert api_of(owner).get(path.format(run.pk)).status_code == 200
