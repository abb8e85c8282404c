"""What the page shows: an owner's boxes and runs in words, what they cost, and nothing of anybody else's."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from base.clock import database_now
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ensure_conversation
from forge import assignments
from forge.models import Assignment
from forge.services import create_issue, create_repository
from runs.models import Run
from tests.fleet_page.conftest import make_box, make_run, signed_in

pytestmark = pytest.mark.django_db
PAGE = "/fleet/"


@pytest.fixture
def attempt(owner: User, conversation: Conversation, settings: Any, tmp_path: Any) -> Assignment:
    settings.FORGE = settings.FORGE | {"storage_root": str(tmp_path)}
    repository = create_repository(owner, "shop")
    issue = create_issue(repository, title="Mend the <till>", body="")
    made, _ = assignments.create(
        requesting_user=owner,
        repository_id=repository.pk,
        issue_number=issue.number,
        box_id=make_box(conversation, "one").box_id,
        command="make test",
    )
    return made


def text_of(client: Client, address: str = PAGE) -> str:
    """What of the page is read: without tags, and with one space where there are several."""
    markup = client.get(address).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup))


def stopped(**fields: Any) -> dict[str, Any]:
    ended = {"state": "archived", "stopped_at": database_now(), "stop_reason": "user_requested"}
    return ended | {"lifetime_seconds": 3600} | fields


def test_whoever_is_not_signed_in_is_sent_to_do_so() -> None:
    for address in (PAGE, "/fleet/live/", "/fleet/usage/"):
        answer = Client().get(address)
        assert (answer.status_code, f"next={address}" in answer["Location"]) == (302, True)


def test_an_empty_fleet_tells_what_to_do(browser: Client) -> None:
    text = text_of(browser)

    assert "No box is active." in text
    assert "press “New box”" in text
    assert "This month $0.00" in text


def test_a_box_is_shown_in_words(browser: Client, conversation: Conversation, box_api: Any) -> None:
    box_api(ttl_seconds=7200)
    make_box(conversation, "one", age=3660, estimated_burn_rate_microusd=100_000)

    text = text_of(browser)

    for said in (
        "one ready ",
        "Lifetime 1 h 01 min",
        "Cost about $0.10",
        "in 58 min",
        "its time is up",
        "Idle for 1 h 01 min",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": "provisioning"}, "starting"),
        ({"box_id": None, "state": "provisioning"}, "being created"),
        ({"box_id": None, "state": "provisioning", "create_unknown": True}, "asked for, not answered yet"),
        ({"state": "error"}, "failed"),
        ({"stop_requested_at": database_now}, "being stopped"),
    ],
    ids=["starting", "reserved", "unanswered", "failed", "stopping"],
)
def test_every_state_has_words(
    browser: Client, conversation: Conversation, fields: dict[str, Any], words: str
) -> None:
    make_box(
        conversation, "one", **{name: value() if callable(value) else value for name, value in fields.items()}
    )

    assert f"one {words} " in text_of(browser)


def test_a_stopped_box_keeps_its_reason_and_its_cost(browser: Client, conversation: Conversation) -> None:
    make_box(conversation, "old", **stopped(stop_reason="ttl_expired", settled_cost_microusd=1_234_567))

    text = text_of(browser)

    assert "old stopped: its time was up Lifetime 1 h 00 min Cost $1.23" in text
    assert "In all, settled $1.23" in text


def test_of_the_stopped_boxes_the_last_five_are_shown(browser: Client, conversation: Conversation) -> None:
    for number in range(7):
        at = database_now() - timedelta(minutes=number)
        make_box(conversation, f"old-{number}", **stopped(stopped_at=at))

    shown = re.findall(r'id="name-[^>]*>(.*?)<', browser.get(PAGE).content.decode())

    assert shown == [f"old-{number}" for number in range(5)]


def test_the_newest_run_is_shown_with_the_end_of_its_output(
    browser: Client, conversation: Conversation
) -> None:
    box = make_box(conversation, "one")
    make_run(box, "old", age=50, state="failed", exit_status=1, output="old text\n")
    run = make_run(box, "new", output="hello <b>world</b>\n", state="completed", exit_status=0)

    markup = browser.get(PAGE).content.decode()

    assert "completed, exit status 0" in markup
    assert "hello &lt;b&gt;world&lt;/b&gt;" in markup
    assert "old text" not in markup
    assert f'href="/api/v1/runs/{run.pk}/log/download"' in markup


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "accepted"),
        ({"state": "running"}, "running"),
        ({"state": "running", "cancellation_requested_at": database_now}, "being cancelled"),
        ({"state": "failed", "exit_status": 137, "exit_signal": "SIGKILL"}, "failed, killed by SIGKILL"),
        ({"state": "timed_out", "timed_out": True}, "timed out"),
        ({"state": "lost", "failure_reason": "box_stopped"}, "lost: box_stopped"),
    ],
    ids=["accepted", "running", "cancelling", "killed", "timed out", "lost"],
)
def test_every_end_of_a_run_has_words(
    browser: Client, conversation: Conversation, fields: dict[str, Any], words: str
) -> None:
    values = {name: value() if callable(value) else value for name, value in fields.items()}
    make_run(make_box(conversation, "one"), "key", **values)

    assert f"make test {words} " in text_of(browser)


def test_output_acts_on_nothing(browser: Client, conversation: Conversation) -> None:
    output = "\x1b[31mred\x1b[0m\n10%\r20%\r\n\x1b]0;title\x07bell\x07 \u202egpj.exe\n"
    make_run(make_box(conversation, "one"), "key", output=output)

    markup = browser.get(PAGE).content.decode()

    assert ">red\n20%\n" in markup
    assert "[U+202E]gpj.exe" in markup
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", markup)


def test_of_a_long_output_the_end_is_sent(browser: Client, conversation: Conversation) -> None:
    output = "".join(f"line {number}\n" for number in range(2200))
    make_run(make_box(conversation, "one"), "key", output=output)

    markup = browser.get(PAGE).content.decode()

    assert "line 2199" in markup
    assert "line 10\n" not in markup
    assert "The beginning is not shown." in markup
    assert f'data-follow="{len(output) - 16 * 1024}"' in markup


def test_another_owners_boxes_are_nowhere(browser: Client, stranger: User) -> None:
    make_run(
        make_box(ensure_conversation(stranger), "theirs", **stopped()),
        "key",
        state="lost",
        output="theirs too",
    )

    assert "theirs" not in text_of(browser)


def test_the_month_is_set_against_the_budget(
    browser: Client, conversation: Conversation, box_api: Any
) -> None:
    box_api(budget_per_owner_month_microusd=5_000_000)
    make_box(conversation, "old", **stopped(settled_cost_microusd=250_000))

    assert "This month $0.25 of $5.00" in text_of(browser)


def test_the_part_that_is_asked_for_again_comes_without_output_and_stays_the_same(
    browser: Client, conversation: Conversation
) -> None:
    make_run(make_box(conversation, "one"), "key", output="hello\n", state="running")

    first, second = (browser.get("/fleet/live/") for _ in range(2))

    assert "hello" not in first.content.decode()
    assert "make test" in first.content.decode()
    assert re.sub(r"\d+ s<", "<", first.content.decode()) == re.sub(r"\d+ s<", "<", second.content.decode())


def test_the_list_of_runs_in_a_terminal_shows_what_is_wanted_too(attempt: Assignment) -> None:
    out = io.StringIO()

    call_command("runs", "list", stdout=out)

    assert attempt.command
    assert attempt.command.split("\n")[0] in out.getvalue()
    assert "Made by OpenAgents" not in out.getvalue()


def test_a_run_of_an_attempt_shows_its_issue_and_what_is_wanted_there(
    browser: Client, attempt: Assignment
) -> None:
    run = Run.objects.get(requesting_principal__id=str(attempt.pk))

    markup = browser.get(PAGE).content.decode()

    assert re.findall(r"<code>(.*?)</code>", markup, re.S) == ["make test"]
    assert "For issue shop #1 Mend the &lt;till&gt;" in markup
    [script] = re.findall(r'<details class="script"[^>]*>.*?<pre[^>]*>(.*?)</pre>', markup, re.S)
    assert unescape(script) == run.command
    assert "<code>make test</code>" in browser.get(f"/fleet/runs/{run.pk}/cancel/").content.decode()


def test_it_asks_the_database_as_often_for_many_boxes_as_for_one(
    browser: Client, owner: User, conversation: Conversation, django_assert_num_queries: Any
) -> None:
    make_run(make_box(conversation, "one"), "first", output="hello")
    with CaptureQueriesContext(connection) as few:
        browser.get(PAGE)
    for number in range(20):
        box = make_box(conversation, f"box-{number}", **(stopped() if number % 2 else {}))
        make_run(box, f"run-{number}", output="hello", state="running")

    with django_assert_num_queries(len(few)):
        browser.get(PAGE)

    assert len(few) == 12


def test_looking_asks_no_provider_and_is_no_activity(browser: Client, conversation: Conversation) -> None:
    box = make_box(conversation, "one", age=600)

    for address in (PAGE, "/fleet/live/", "/fleet/usage/", f"/fleet/boxes/{box.pk}/stop/"):
        assert browser.get(address).status_code == 200  # a call to the provider would have failed

    assert Box.objects.get().last_activity_at is None


def test_it_can_be_used_by_everyone_and_runs_nothing_of_its_own(
    browser: Client, conversation: Conversation
) -> None:
    make_run(make_box(conversation, "one"), "key", output="hello")

    answer = browser.get(PAGE)
    markup = answer.content.decode()

    assert '<html lang="en">' in markup
    assert markup.count("<h1>") == 1
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", markup) == []
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "no-store" in answer["Cache-Control"]
    fields = set(re.findall(r'<(?:input|textarea) id="([^"]+)"', markup))
    assert fields <= set(re.findall(r'<label for="([^"]+)"', markup))
    assert len(re.findall(r' id="([^"]+)"', markup)) == len(set(re.findall(r' id="([^"]+)"', markup)))


def test_it_is_styled_for_light_and_dark_and_for_stillness() -> None:
    for name in ("site/page.css", "site/fleet.css", "site/fleet.js", "site/icon.svg"):
        assert finders.find(name), name
    with open(finders.find("site/page.css"), encoding="utf-8") as style:
        assert "prefers-color-scheme: dark" in style.read()


def test_the_bare_address_leads_to_ones_own_page(owner: User, staff: User) -> None:
    assert signed_in(owner).get("/")["Location"] == "/fleet/"
    assert signed_in(staff).get("/")["Location"] == "/admin/"
    assert Client().get("/").status_code == 302
    assert Client().get("/favicon.ico")["Location"].endswith("site/icon.svg")
