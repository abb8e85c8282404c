"""The page where an owner types a code: it shows what asks, grants nothing before it is told to, and needs no script."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from work.machines import start_pairing
from work.models import Machine

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def asked(**changes: Any) -> str:
    description = {"name": "laptop", "tier": "curated", "platform": "linux", "roots": ["/srv/work"]} | changes
    return start_pairing(**description).code


def test_whoever_is_not_signed_in_is_sent_to_do_so() -> None:
    answer = Client().get("/pair/?code=ABCD-EFGH")

    assert answer.status_code == 302
    assert "next=/pair/%3Fcode%3DABCD-EFGH" in answer["Location"]


def test_it_shows_what_asks_and_grants_nothing_by_looking(browser: Client) -> None:
    page = browser.post("/pair/", {"code": asked(tier="shell", agent_version="0.9"), "answer": "look"})

    text = page.content.decode()
    for shown in ("laptop", "linux", "/srv/work", "shell", "run commands", "0.9", "Approve"):
        assert shown in text
    assert not Machine.objects.exists()


def test_a_code_in_the_address_grants_nothing_and_is_filled_in(browser: Client) -> None:
    page = browser.get(f"/pair/?code={asked()}&answer=approve")

    assert 'value="' in page.content.decode()
    assert not Machine.objects.exists()


def test_it_approves_and_says_so(browser: Client, owner: User) -> None:
    answer = browser.post("/pair/", {"code": asked(), "answer": "approve"}, follow=True)

    assert "laptop is paired" in answer.content.decode()
    assert Machine.objects.get().user == owner


def test_another_owner_learns_nothing_of_the_machine(browser: Client, stranger: User) -> None:
    browser.post("/pair/", {"code": asked(), "answer": "approve"})
    other = Client()
    other.force_login(stranger)

    page = other.get(f"/pair/?paired={Machine.objects.get().pk}")

    assert "laptop" not in page.content.decode()
    assert other.get("/pair/?paired=nonsense").status_code == 200


def test_it_needs_the_csrf_token(owner: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)

    answer = client.post("/pair/", {"code": asked(), "answer": "approve"})

    assert answer.status_code == 403
    assert not Machine.objects.exists()


def test_a_name_is_text_and_never_markup(browser: Client) -> None:
    page = browser.post("/pair/", {"code": asked(name="<script>alert(1)</script>"), "answer": "look"})

    assert "<script>" not in page.content.decode()
    assert "&lt;script&gt;" in page.content.decode()


@pytest.mark.parametrize(("code", "status"), [("", 422), ("--", 422), ("ABCD-EFGH", 404), ("x" * 5000, 404)])
def test_a_code_that_nobody_shows_is_said_in_words(browser: Client, code: str, status: int) -> None:
    page = browser.post("/pair/", {"code": code, "answer": "look"})

    assert page.status_code == status
    assert 'role="alert"' in page.content.decode()


def test_a_used_code_is_said_in_words(browser: Client) -> None:
    code = asked()
    browser.post("/pair/", {"code": code, "answer": "approve"})

    page = browser.post("/pair/", {"code": code, "answer": "approve"})

    assert (page.status_code, "was used already" in page.content.decode()) == (409, True)


def test_codes_cannot_be_guessed_at_will(browser: Client) -> None:
    pages = [browser.post("/pair/", {"code": "ABCD-EFGH"}).status_code for _ in range(21)]

    assert pages == [404] * 20 + [429]


def test_it_can_be_read_by_everyone_and_runs_nothing(browser: Client) -> None:
    for page in (browser.get("/pair/"), browser.post("/pair/", {"code": asked(), "answer": "look"})):
        text = page.content.decode()
        assert '<html lang="en">' in text
        assert text.count("<h1>") == 1
        assert "<script" not in text
        assert "default-src 'none'" in page["Content-Security-Policy"]
        assert "no-store" in page["Cache-Control"]
    assert '<label for="code">' in browser.get("/pair/").content.decode()


def test_it_is_styled_for_light_and_dark(browser: Client) -> None:
    from django.contrib.staticfiles import finders

    style = finders.find("site/page.css")
    with open(style, encoding="utf-8") as file:
        assert "prefers-color-scheme: dark" in file.read()
