"""Owners sign in by GitHub: who they are is their GitHub id and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.test import Client

from accounts.models import User
from accounts.services import delete_user, upsert_github_user
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.django_db
HERE = "http://testserver"


def signed_in_as(browser: Client) -> str | None:
    return browser.session.get("_auth_user_id")


def at_github(browser: Client, **form: str) -> str:
    """Press the button and say yes: the address that GitHub sends the browser back to."""
    away = browser.post("/accounts/github/login/", form)
    assert away.status_code == 302
    back = requests.get(away["Location"], allow_redirects=False, timeout=10)
    assert back.headers["Location"].startswith(f"{HERE}/accounts/github/login/callback/?")
    return back.headers["Location"].removeprefix(HERE)


def sign_in(browser: Client, **form: str) -> Any:
    return browser.get(at_github(browser, **form))


def test_a_stranger_becomes_the_user_with_that_github_id(browser: Client, github: FakeGitHub) -> None:
    answer = sign_in(browser)

    user = User.objects.get(github_id=7000)
    assert (answer.status_code, answer["Location"]) == (302, "/fleet/")
    assert signed_in_as(browser) == str(user.pk)
    assert (user.github_login, user.github_avatar_url) == ("octo", github.person["avatar_url"])
    assert not user.has_usable_password()
    assert not user.is_staff


def test_it_keeps_no_account_table_of_its_own_and_no_token(browser: Client, github: FakeGitHub) -> None:
    sign_in(browser)

    assert not SocialAccount.objects.exists()
    assert not SocialToken.objects.exists()
    assert github.asked == ["/login/oauth/authorize", "/login/oauth/access_token", "/api/v3/user"]


def test_the_same_person_is_the_same_user_under_another_login(browser: Client, github: FakeGitHub) -> None:
    known = upsert_github_user(github_id=7000, github_login="old-name")

    sign_in(browser)

    known.refresh_from_db()
    assert signed_in_as(browser) == str(known.pk)
    assert known.github_login == "octo"


def test_an_equal_mail_address_or_name_is_nobody_else(browser: Client, github: FakeGitHub) -> None:
    other = User.objects.create_user("octo", email="octo@mail.invalid", password="a-password-of-theirs")

    sign_in(browser)

    assert signed_in_as(browser) not in {None, str(other.pk)}


def test_a_closed_account_is_refused(browser: Client, github: FakeGitHub) -> None:
    known = upsert_github_user(github_id=7000, github_login="octo")
    User.objects.filter(pk=known.pk).update(is_active=False)

    answer = sign_in(browser)

    assert answer.status_code == 403
    assert signed_in_as(browser) is None


def test_a_deleted_account_stays_deleted_and_its_owner_begins_anew(
    browser: Client, github: FakeGitHub
) -> None:
    known = upsert_github_user(github_id=7000, github_login="octo")
    delete_user(known)

    sign_in(browser)

    assert signed_in_as(browser) == str(User.objects.get(github_id=7000).pk) != str(known.pk)


def test_only_the_named_logins_are_let_in(browser: Client, github: FakeGitHub, settings: Any) -> None:
    settings.SIGN_IN = settings.SIGN_IN | {"github_logins": ("Someone",)}
    assert sign_in(browser).status_code == 403

    settings.SIGN_IN = settings.SIGN_IN | {"github_logins": ("OCTO",)}
    assert sign_in(browser).status_code == 302


def test_the_session_is_another_one_afterwards(browser: Client, github: FakeGitHub) -> None:
    back = at_github(browser)
    before = browser.session.session_key

    browser.get(back)

    assert browser.session.session_key != before


def test_who_was_signed_in_as_somebody_else_is_not_any_more(
    browser: Client, github: FakeGitHub, staff: User
) -> None:
    browser.force_login(staff)

    sign_in(browser)

    assert signed_in_as(browser) == str(User.objects.get(github_id=7000).pk)


def test_staff_are_led_to_the_staff_pages(browser: Client, github: FakeGitHub) -> None:
    known = upsert_github_user(github_id=7000, github_login="octo")
    User.objects.filter(pk=known.pk).update(is_staff=True)

    assert sign_in(browser)["Location"] == "/admin/"


@pytest.mark.parametrize(
    ("wanted", "led"),
    [
        ("/pair/?code=ABCD", "/pair/?code=ABCD"),
        ("https://elsewhere.invalid/", "/fleet/"),
        ("//elsewhere.invalid/", "/fleet/"),
        ("javascript:alert(1)", "/fleet/"),
        ("http://localhost/admin/", "/fleet/"),
    ],
)
def test_next_leads_to_our_own_host_only(browser: Client, github: FakeGitHub, wanted: str, led: str) -> None:
    assert sign_in(browser, next=wanted)["Location"] == led


def test_a_code_is_good_once_and_for_the_browser_that_asked(browser: Client, github: FakeGitHub) -> None:
    back = at_github(browser)

    assert Client().get(back).status_code == 401
    assert browser.get(back).status_code == 302
    browser.logout()
    assert browser.get(back).status_code == 401


def test_whoever_says_no_is_told_so(browser: Client, github: FakeGitHub) -> None:
    state = at_github(browser).partition("state=")[2]

    answer = browser.get(f"/accounts/github/login/callback/?error=access_denied&state={state}")

    assert answer.status_code == 403
    assert "You said no" in answer.content.decode()


@pytest.mark.parametrize(
    "person", [{}, {"id": "7000", "login": "octo"}, {"id": 7000}, {"id": True, "login": "x"}]
)
def test_an_answer_that_names_nobody_signs_nobody_in(
    browser: Client, github: FakeGitHub, person: dict[str, Any]
) -> None:
    github.person = {"id": 1, "login": ""} if not person else person | {"avatar_url": None}

    answer = sign_in(browser)

    assert answer.status_code == 401
    assert not User.objects.exists()


def test_a_broken_github_is_told_in_our_words(browser: Client, github: FakeGitHub) -> None:
    github.broken = True

    answer = sign_in(browser)

    assert answer.status_code == 401
    assert "please try again" in answer.content.decode().lower()


def test_without_configuration_there_is_no_button_and_no_address(browser: Client) -> None:
    assert "GitHub" not in browser.get("/accounts/login/").content.decode()
    assert browser.post("/accounts/github/login/").status_code == 404
    assert browser.get("/accounts/github/login/callback/?code=x&state=y").status_code == 404


def test_half_a_configuration_is_none(browser: Client, settings: Any) -> None:
    settings.SIGN_IN = {"github_client_id": "only-this"}

    assert browser.post("/accounts/github/login/").status_code == 404


def test_it_does_not_go_to_github_by_a_link(browser: Client, github: FakeGitHub) -> None:
    assert browser.get("/accounts/github/login/").status_code == 405
    assert Client(enforce_csrf_checks=True).post("/accounts/github/login/").status_code == 403
