"""Staff sign in by a password, on two pages with one set of bounds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.db.models import F
from django.test import Client
from django.urls import reverse

from accounts.models import User

pytestmark = pytest.mark.django_db
OURS, ADMIN = "/accounts/login/", "/admin/login/"
PAGES = pytest.mark.parametrize("page", [OURS, ADMIN])


def tried(browser: Client, page: str, name: str = "staff", password: str = "wrong", **more: Any) -> Any:
    field = "login" if page == OURS else "username"
    return browser.post(page, {field: name, "password": password}, **more)


def signed_in(browser: Client) -> bool:
    return "_auth_user_id" in browser.session


def test_the_site_sends_whoever_must_sign_in_to_our_page(browser: Client) -> None:
    assert browser.get("/pair/")["Location"] == "/accounts/login/?next=/pair/"


@PAGES
def test_the_right_password_signs_in_and_changes_the_session(browser: Client, staff: User, page: str) -> None:
    browser.get(page)
    before = browser.session.session_key

    answer = tried(browser, page, password="staff-password")

    assert answer.status_code == 302
    assert signed_in(browser)
    assert browser.session.session_key != before


def test_staff_go_to_the_staff_pages_and_owners_to_their_fleet(browser: Client, staff: User) -> None:
    User.objects.create_user("plain", password="their-password")

    assert tried(browser, OURS, password="staff-password")["Location"] == "/admin/"
    assert tried(Client(), OURS, "plain", "their-password")["Location"] == "/fleet/"


@pytest.mark.parametrize(
    "wanted", ["https://elsewhere.invalid/x", "//elsewhere.invalid", "http:///x", "\\\\x"]
)
def test_next_never_leads_away(browser: Client, staff: User, wanted: str) -> None:
    answer = browser.post(OURS, {"login": "staff", "password": "staff-password", "next": wanted})

    assert answer["Location"] == "/admin/"


def test_next_leads_on_at_home(browser: Client, staff: User) -> None:
    answer = browser.post(f"{OURS}?next=/pair/", {"login": "staff", "password": "staff-password"})

    assert answer["Location"] == "/pair/"
    assert 'value="/pair/"' in Client().get(f"{OURS}?next=/pair/").content.decode()


@PAGES
def test_too_many_wrong_passwords_lock_and_say_until_when(browser: Client, staff: User, page: str) -> None:
    before = [tried(browser, page).status_code for _ in range(4)]

    fifth = tried(browser, page)
    right = tried(browser, page, password="staff-password")

    assert before == [200] * 4
    assert (fifth.status_code, right.status_code) == (429, 429)
    assert 840 < int(fifth["Retry-After"]) <= 900
    assert "Try again in 15 minutes" in fifth.content.decode()
    assert not signed_in(browser)


def test_both_pages_count_together(browser: Client, staff: User) -> None:
    for page in (OURS, ADMIN, OURS, ADMIN):
        tried(browser, page)

    assert tried(browser, OURS).status_code == 429


def test_the_lock_is_of_one_name_from_one_address(browser: Client, staff: User) -> None:
    for _ in range(5):
        tried(browser, OURS)

    assert tried(browser, OURS, "another").status_code == 200
    elsewhere = tried(Client(), OURS, password="staff-password", REMOTE_ADDR="192.0.2.9")
    assert elsewhere.status_code == 302


def test_a_name_that_does_not_exist_locks_like_one_that_does(browser: Client, staff: User) -> None:
    answers = {
        name: [tried(browser, OURS, name).status_code for _ in range(6)] for name in ("staff", "nobody")
    }

    assert answers["staff"] == answers["nobody"] == [200] * 4 + [429] * 2


def test_another_browser_does_not_get_around_the_lock(browser: Client, staff: User) -> None:
    for number in range(5):
        tried(Client(), OURS, HTTP_USER_AGENT=f"browser {number}")

    assert tried(browser, OURS, password="staff-password").status_code == 429


def test_the_lock_ends_when_it_was_said_to(browser: Client, staff: User) -> None:
    for _ in range(5):
        tried(browser, OURS)
    for _ in range(3):  # what is tried meanwhile does not make it longer
        tried(browser, OURS)
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=15, seconds=1))

    assert tried(browser, OURS, password="staff-password").status_code == 302


def test_a_right_password_forgets_the_wrong_ones(browser: Client, staff: User) -> None:
    for _ in range(4):
        tried(browser, OURS)
    tried(browser, OURS, password="staff-password")

    assert [tried(Client(), OURS).status_code for _ in range(4)] == [200] * 4


@PAGES
def test_many_names_from_one_address_are_bounded_too(browser: Client, settings: Any, page: str) -> None:
    settings.SIGN_IN = {"passwords_per_minute": 3}

    answers = [tried(browser, page, f"name-{number}") for number in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[3]["Retry-After"]) <= 60


@PAGES
def test_odd_names_are_refused_like_any_other(browser: Client, page: str) -> None:
    for name in ("x" * 5000, "a\0b", "é" * 200, "' or 1=1 --"):
        assert tried(browser, page, name, HTTP_USER_AGENT="u" * 3000).status_code == 200


def test_what_a_proxy_says_is_the_address_only_where_it_is_trusted(
    browser: Client, staff: User, settings: Any
) -> None:
    settings.MACHINES = settings.MACHINES | {"client_address_header": "X-Real-IP"}
    for _ in range(5):
        tried(browser, OURS, HTTP_X_REAL_IP="192.0.2.1")

    assert tried(browser, OURS, HTTP_X_REAL_IP="192.0.2.1").status_code == 429
    assert tried(browser, OURS, HTTP_X_REAL_IP="192.0.2.2").status_code == 200
    assert tried(browser, OURS, HTTP_X_REAL_IP="no address").status_code == 200


def test_of_several_addresses_that_proxies_name_the_last_counts(
    browser: Client, staff: User, settings: Any
) -> None:
    settings.MACHINES = settings.MACHINES | {"client_address_header": "X-Forwarded-For"}
    for number in range(5):
        tried(browser, OURS, HTTP_X_FORWARDED_FOR=f"198.51.100.{number}, 192.0.2.1")

    assert tried(browser, OURS, HTTP_X_FORWARDED_FOR="198.51.100.9, 192.0.2.1").status_code == 429
    assert tried(browser, OURS, HTTP_X_FORWARDED_FOR="198.51.100.9, 192.0.2.2").status_code == 200


@PAGES
def test_who_has_many_ipv6_addresses_has_no_more_tries(browser: Client, staff: User, page: str) -> None:
    for number in range(5):
        tried(browser, page, REMOTE_ADDR=f"2001:db8::{number}")

    assert tried(browser, page, REMOTE_ADDR="2001:db8::9").status_code == 429
    assert tried(browser, page, REMOTE_ADDR="2001:db8:0:1::9").status_code == 200


def test_closed_and_deleted_users_are_refused(browser: Client, staff: User) -> None:
    User.objects.filter(pk=staff.pk).update(is_active=False)

    assert tried(browser, OURS, password="staff-password").status_code == 200
    assert not signed_in(browser)


def test_nobody_signs_up_or_changes_anything_here(browser: Client) -> None:
    for path in ("signup/", "password/reset/", "email/", "3rdparty/", "social/signup/", "password/change/"):
        assert browser.get(f"/accounts/{path}").status_code == 404


def test_signing_out_takes_a_post(browser: Client, staff: User) -> None:
    browser.force_login(staff)

    asked = browser.get(reverse("account_logout"))
    assert asked.status_code == 200
    assert signed_in(browser)

    assert browser.post(reverse("account_logout"))["Location"] == OURS
    assert not signed_in(browser)


def test_the_forms_need_the_csrf_token(staff: User) -> None:
    careful = Client(enforce_csrf_checks=True)

    assert tried(careful, OURS, password="staff-password").status_code == 403
    careful.force_login(staff)
    assert careful.post(reverse("account_logout")).status_code == 403


def test_the_pages_allow_no_script_and_are_not_kept(browser: Client) -> None:
    answer = browser.get(OURS)

    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "no-store" in answer["Cache-Control"]
    assert "<script" not in answer.content.decode()


def test_a_password_is_in_no_row(browser: Client, staff: User) -> None:
    tried(browser, OURS, password="a-mistyped-secret")
    tried(browser, ADMIN, password="a-mistyped-secret")

    kept = [str(value) for row in AccessAttempt.objects.values() for value in row.values()]
    assert kept
    assert not [value for value in kept if "a-mistyped-secret" in value]


def test_the_staff_pages_show_no_tables_that_mean_nothing_here(browser: Client, staff: User) -> None:
    browser.force_login(staff)

    assert browser.get("/admin/").status_code == 200
    for path in ("socialaccount/socialapp/", "socialaccount/socialaccount/", "account/emailaddress/"):
        assert browser.get(f"/admin/{path}").status_code == 404
