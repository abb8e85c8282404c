"""What an owner does on the page by plain forms: the services of the API, asked after a question, refused in words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from boxes.models import Box
from boxes.states import StopReason
from conversations.models import Conversation
from conversations.services import ensure_conversation
from runs.models import Run
from tests.fakes.provider import FakeProvider
from tests.fleet_page.conftest import make_box, make_run, signed_in

pytestmark = pytest.mark.django_db
NOWHERE = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def box(provider: FakeProvider, conversation: Conversation) -> Box:
    return make_box(conversation, "one", box_id=provider.add_box(state="ready").id)


def told(answer: Any) -> list[str]:
    """What the page says of the last action."""
    return re.findall(r'class="note[^>]*>(.+?)<', answer.content.decode())


def test_a_box_is_stopped_after_a_question(browser: Client, box: Box) -> None:
    asked = browser.get(f"/fleet/boxes/{box.pk}/stop/")
    assert "Stop one?" in asked.content.decode()
    assert Box.objects.get().is_active

    answer = browser.post(f"/fleet/boxes/{box.pk}/stop/", follow=True)

    assert Box.objects.get().stop_reason == StopReason.USER_REQUESTED
    assert told(answer) == ["one is stopped."]


def test_a_stop_that_fails_is_told_and_the_box_stays(browser: Client, box: Box, fake: FakeProvider) -> None:
    fake.always("stop", status=500)

    answer = browser.post(f"/fleet/boxes/{box.pk}/stop/")

    assert (answer.status_code, len(told(answer))) == (502, 1)
    assert Box.objects.get().is_active


def test_a_box_that_is_stopped_already_is_said_to_be(browser: Client, box: Box) -> None:
    browser.post(f"/fleet/boxes/{box.pk}/stop/", follow=True)

    answer = browser.post(f"/fleet/boxes/{box.pk}/stop/")

    assert (answer.status_code, told(answer)) == (409, ["The box is stopped."])


def test_a_run_is_started_once_however_often_its_form_is_sent(browser: Client, box: Box) -> None:
    sent = {"command": "echo one\r\necho two", "key": "k1"}

    first, second = (browser.post(f"/fleet/boxes/{box.pk}/runs/", sent, follow=True) for _ in range(2))

    assert Run.objects.get().command == "echo one\necho two"
    assert told(first) == told(second) == ["The run was accepted."]


def test_a_refused_command_is_still_in_its_field(
    browser: Client, box: Box, conversation: Conversation
) -> None:
    make_run(box, "busy", state="running")
    other = make_box(conversation, "two", box_id=None)

    busy = browser.post(f"/fleet/boxes/{box.pk}/runs/", {"command": "make", "key": "k"})
    blank = browser.post(f"/fleet/boxes/{box.pk}/runs/", {"command": " ", "key": "k"})
    unready = browser.post(f"/fleet/boxes/{other.pk}/runs/", {"command": "make", "key": "k"})

    assert (busy.status_code, blank.status_code, unready.status_code) == (409, 422, 409)
    assert all(len(told(answer)) == 1 for answer in (busy, blank, unready))


def test_what_was_typed_for_a_box_stays_with_it(
    browser: Client, box: Box, conversation: Conversation, provider: FakeProvider
) -> None:
    make_box(conversation, "two", box_id=provider.add_box(state="ready").id)

    answer = browser.post(f"/fleet/boxes/{box.pk}/runs/", {"command": "x" * 8001, "key": "k"})

    texts = re.findall(r'<textarea id="command-([^"]+)"[^>]*>(x*)</textarea>', answer.content.decode())
    assert answer.status_code == 422
    assert [(name == str(box.pk), len(text)) for name, text in texts] == [(False, 0), (True, 8001)]


def test_a_run_is_cancelled_after_a_question(browser: Client, box: Box) -> None:
    run = make_run(box, "key", state="running")
    assert "make test" in browser.get(f"/fleet/runs/{run.pk}/cancel/").content.decode()
    assert Run.objects.get().cancellation_requested_at is None

    answer = browser.post(f"/fleet/runs/{run.pk}/cancel/", follow=True)

    assert Run.objects.get().cancellation_requested_at is not None
    assert told(answer) == ["The run is being cancelled."]
    assert "being cancelled" in answer.content.decode()


def test_a_run_that_has_ended_is_not_cancelled(browser: Client, box: Box) -> None:
    run = make_run(box, "key", state="completed", exit_status=0)

    assert "It has ended already." in browser.get(f"/fleet/runs/{run.pk}/cancel/").content.decode()
    assert told(browser.post(f"/fleet/runs/{run.pk}/cancel/", follow=True)) == ["The run had ended already."]


def test_a_box_is_asked_for_once_however_often_its_form_is_sent(
    browser: Client, provider: FakeProvider
) -> None:
    for _ in range(2):
        answer = browser.post("/fleet/boxes/", {"label": " tests ", "key": "k1"}, follow=True)

    assert Box.objects.get().label == "tests"
    assert told(answer) == ["A box was asked for. It is ready in a moment."]
    assert len(provider.existing()) == 1


def test_a_box_too_many_is_refused_and_its_label_still_there(browser: Client, box: Box, box_api: Any) -> None:
    box_api(default_maximum_active_boxes=1)

    answer = browser.post("/fleet/boxes/", {"label": "tests", "key": "k1"})

    assert (answer.status_code, len(told(answer))) == (409, 1)
    assert (
        'name="label" maxlength="128" autocomplete="off" spellcheck="false" value="tests"'
        in answer.content.decode()
    )


def test_forms_are_limited_as_the_api_is(browser: Client, box: Box) -> None:
    """Ten a minute; of twenty-one in a row one is refused even where a minute ends between them."""
    address = f"/fleet/boxes/{box.pk}/runs/"

    answers = [browser.post(address, {"command": "", "key": "k"}) for _ in range(21)]

    assert answers[0].status_code == 422
    [limited, *_] = [answer for answer in answers if answer.status_code == 429]
    assert 1 <= int(limited["Retry-After"]) <= 60


@pytest.mark.parametrize("kind", ["stop", "runs", "cancel"])
def test_what_is_anothers_is_not_there(browser: Client, stranger: User, kind: str) -> None:
    box = make_box(ensure_conversation(stranger), "theirs")
    run = make_run(box, "key", state="running")
    address = {
        "stop": f"boxes/{box.pk}/stop",
        "runs": f"boxes/{box.pk}/runs",
        "cancel": f"runs/{run.pk}/cancel",
    }[kind]
    nowhere = address.replace(str(box.pk), NOWHERE).replace(str(run.pk), NOWHERE)

    theirs, none = (
        browser.post(f"/fleet/{path}/", {"command": "ls", "key": "k"}) for path in (address, nowhere)
    )

    assert theirs.status_code == none.status_code == 404
    assert told(theirs) == told(none)
    assert Box.objects.get().is_active
    assert Run.objects.get().cancellation_requested_at is None


@pytest.mark.parametrize(
    "address", ["boxes/", f"boxes/{NOWHERE}/stop/", f"boxes/{NOWHERE}/runs/", f"runs/{NOWHERE}/cancel/"]
)
def test_nothing_is_done_without_the_session_and_its_token(owner: User, address: str) -> None:
    assert Client().post(f"/fleet/{address}")["Location"].startswith("/")
    assert signed_in(owner, enforce_csrf_checks=True).post(f"/fleet/{address}").status_code == 403


def test_what_changes_something_is_no_get(browser: Client) -> None:
    assert browser.get("/fleet/boxes/").status_code == 405
    assert browser.get(f"/fleet/boxes/{NOWHERE}/runs/").status_code == 405
    assert browser.post("/fleet/").status_code == 405
