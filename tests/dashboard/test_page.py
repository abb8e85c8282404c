"""The index of the staff site: every figure leads to the list of just what it counts, and only to what one may see."""

from __future__ import annotations

import html
import re
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.staticfiles import finders
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from boxes.models import ReconciliationEvent
from tests.dashboard.conftest import MakeBox, MakeRun
from work.incidents import report

pytestmark = pytest.mark.django_db
PAGE = "/admin/"


@pytest.fixture
def filled(make_box: MakeBox, make_run: MakeRun, now: datetime, owner: User) -> None:
    """Something of everything that is counted."""
    for state in ("ready", "ready", "provisioning"):
        make_box(state=state)
    for state in ("running", "admitted", "completed", "completed", "failed", "timed_out"):
        make_run(state)
    for number in range(3):
        ReconciliationEvent.objects.create(
            provider_box_id=f"bx{number}", event_type="leak", reason="unclaimed", owned=number == 0, observed_at=now,
            handled_at=now if number == 2 else None,
        )  # fmt: skip
    report({"surface": "controller", "origin": "test", "code": "one", "owner_user": owner.pk, "summary": "x"})


def counts(markup: str) -> dict[str, tuple[str, int]]:
    """What is counted -> the list it leads to, and the number."""
    cards = re.findall(r'<h3><a href="([^"]+)">([^<]+)</a></h3>\s*<p class="value">([\d,]+)<', markup)
    lines = re.findall(r'<li><a href="([^"]+)">([^<]+)</a> <span>([\d,]+)</span>', markup)
    return {f"{name} {link}": (html.unescape(link), int(value)) for link, name, value in (*cards, *lines)}


def test_every_count_leads_to_a_list_of_as_many_rows(browser: Client, filled: None) -> None:
    found = counts(browser.get(PAGE).content.decode())

    assert len(found) == 15
    for name, (link, number) in found.items():
        answer = browser.get(link)
        assert (name, answer.status_code) == (name, 200)
        assert (name, len(answer.context["cl"].result_list)) == (name, number)


def test_every_other_link_leads_somewhere(browser: Client, filled: None) -> None:
    markup = browser.get(PAGE).content.decode()
    main = markup[markup.index('class="dashboard"') :]

    links = {html.unescape(link) for link in re.findall(r'<a href="(/[^"]+)"', main)}

    assert len(links) > 20
    assert {link: browser.get(link).status_code for link in links} == dict.fromkeys(links, 200)


def test_every_queue_leads_to_what_waits_in_it(browser: Client) -> None:
    queues = browser.get(PAGE).context["queues"]

    assert len(queues) >= 11
    assert [line.name for line in queues if not line.link] == []


def test_ceilings_are_shown_with_how_much_of_them_is_used(
    browser: Client, make_box: MakeBox, box_api: Any, now: datetime
) -> None:
    box_api(budget_month_microusd=2_000_000, maximum_active_boxes_global=4)
    make_box()
    make_box(stopped_at=now, settled_cost_microusd=500_000)

    markup = browser.get(PAGE).content.decode()

    assert "of 4 at most" in markup
    assert "of $2.00" in markup
    assert re.findall(r'<meter[^>]* value="(\d+)"', markup) == ["25", "25"]


def test_the_charts_are_of_seven_days_or_of_thirty(browser: Client, filled: None) -> None:
    for asked, shown in (("", 7), ("?days=30", 30), ("?days=7", 7), ("?days=9999999", 7), ("?days=x", 7)):
        markup = browser.get(f"{PAGE}{asked}").content.decode()
        assert f"The last {shown} days" in markup
        assert markup.count('<th scope="row">20') == 3 * shown


def test_charts_can_be_read_without_seeing_them(browser: Client, filled: None) -> None:
    markup = browser.get(PAGE).content.decode()

    assert markup.count('role="img" aria-label=') == markup.count("<svg viewBox") == 3
    assert 'aria-label="Runs by their end: 4 in 7 days (UTC), at most 4 on one day."' in markup
    assert markup.count("<summary>As a table</summary>") == 3


def test_whoever_may_see_nothing_is_shown_no_figure(owner: User) -> None:
    owner.is_staff = True
    owner.save()
    client = Client()
    client.force_login(owner)
    none = client.get(PAGE).content.decode()
    owner.user_permissions.add(Permission.objects.get(codename="view_incident"))

    some = client.get(PAGE).content.decode()

    assert re.findall(r"<h3><a[^>]*>([^<]+)<", none) == []
    assert re.findall(r"<h3><a[^>]*>([^<]+)<", some) == ["Open incidents"]
    assert "The last 7 days" not in some


def test_the_page_asks_the_database_as_often_for_many_rows_as_for_none(
    browser: Client, make_box: MakeBox, make_run: MakeRun
) -> None:
    with CaptureQueriesContext(connection) as few:
        browser.get(PAGE)
    for state in ("completed", "failed", "running") * 5:
        make_run(state)
        make_box()

    with CaptureQueriesContext(connection) as many:
        browser.get(PAGE)

    assert len(many) == len(few)


def test_everything_on_it_comes_from_this_site(browser: Client, filled: None) -> None:
    markup = browser.get(PAGE).content.decode()

    assert re.findall(r'(?:src|href)="(?:https?:)?//[^"]*"', markup) == []
    assert finders.find("site/dashboard.css")
    assert 'href="/static/site/icon.svg"' in markup
    assert 'href="/fleet/"' in markup
