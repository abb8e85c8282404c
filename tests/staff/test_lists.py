"""What makes a list fast and a search exact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import Model
from django.test import Client
from django_q.models import Failure, Success, Task

from accounts.models import ApiToken, IdempotencyKey, User
from base.admin import age, money, paging, searching, short, span
from boxes.models import Box, ScheduleSlot
from conversations.services import ensure_conversation
from forge.models import AssignmentCredential
from openagents_site.webhooks.models import Event, Subscription
from runs.models import Run, RunLogChunk
from tests.staff.conftest import list_of, page_of
from tests.staff.rows import NOW, Rows
from work.models import MachineFrame, MachinePairing, MachineRequest


@pytest.fixture
def boxes(owner: User, stranger: User) -> dict[str, Box]:
    """Four boxes by label, of two owners, of three days in two years."""
    days = {"web": (2025, 12, 31), "docs": (2026, 1, 1), "tests": (2026, 1, 9), "web-2": (2026, 1, 9)}
    made = {}
    for number, (label, day) in enumerate(days.items()):
        made[label] = Box.objects.create(
            id=UUID(int=0xABCD0000 + number << 96),
            conversation=ensure_conversation(stranger if label == "docs" else owner),
            label=label,
            box_id=f"bx_{number}abc",
            created_at=datetime(*day, 12, tzinfo=UTC),
        )
    return made


def labels(browser: Client, **query: Any) -> list[str]:
    return [box.label for box in browser.get(list_of(Box), query).context["cl"].result_list]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("tests", ["tests"]),
        ("web", ["web"]),
        ("we", ["web-2", "web"]),
        ("web-", ["web-2"]),
        ("bx_1abc", ["docs"]),
        ("bx_", ["web-2", "tests", "docs", "web"]),
        ("abcd0002", ["tests"]),
        ("ABCD-0002", ["tests"]),
        ("abcd", ["web-2", "tests", "docs", "web"]),
        ("abc", []),
        ("github-2", ["docs"]),
        ("  tests  ", ["tests"]),
        ("est", []),
        ("%", []),
        ("x" * 500, []),
    ],
)
def test_a_search_finds_exact_values_and_beginnings(
    browser: Client, boxes: dict[str, Box], term: str, found: list[str]
) -> None:
    assert labels(browser, q=term) == found


@pytest.mark.django_db
def test_a_search_finds_by_the_ids_of_what_a_row_belongs_to(browser: Client, boxes: dict[str, Box]) -> None:
    assert labels(browser, q=str(boxes["docs"].conversation_id)) == ["docs"]
    assert labels(browser, q=str(boxes["docs"].pk)) == ["docs"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        (MachineFrame, "body__icontains"),
        (MachineRequest, "answer__icontains"),
        (MachinePairing, "sealed_token__isnull"),
        (MachinePairing, "code_digest__startswith"),
        (ApiToken, "digest__startswith"),
        (ApiToken, "pk__startswith"),
        (User, "auth_token_set__digest__startswith"),
        (AssignmentCredential, "token_digest__startswith"),
        (Subscription, "url__contains"),
        (Event, "row__command__startswith"),
        (IdempotencyKey, "answer__icontains"),
        (RunLogChunk, "pieces__icontains"),
        (Task, "result__contains"),
    ],
)
def test_a_list_is_not_filtered_by_what_its_pages_keep_to_themselves(
    browser: Client, model: type[Model], lookup: str
) -> None:
    pages = [Success, Failure] if model is Task else [model]

    answers = [browser.get(list_of(page), {lookup: "a"}) for page in pages]

    assert {answer.status_code for answer in answers} == {400}


@pytest.mark.django_db
@pytest.mark.parametrize("query", [{"label": "\0"}, {"state": "\0"}, {"state__in": "ready,\0"}])
def test_a_filter_that_no_text_can_meet_is_left_out(browser: Client, query: dict[str, str]) -> None:
    answer = browser.get(list_of(Box), query)

    assert (answer.status_code, answer.headers["Location"]) == (302, f"{list_of(Box)}?e=1")


@pytest.mark.django_db
def test_a_page_of_what_is_no_id_is_not_there(browser: Client) -> None:
    assert browser.get(f"{list_of(ScheduleSlot)}\0/change/").status_code == 302


@pytest.mark.django_db
def test_a_list_does_not_name_its_rows_by_their_digests(browser: Client) -> None:
    assert browser.get(list_of(ApiToken), {"_to_field": "digest", "_popup": "1"}).status_code == 400


@pytest.mark.django_db
def test_a_search_for_what_no_text_holds_finds_nothing(boxes: dict[str, Box]) -> None:
    assert list(searching.search(Box.objects.all(), ("label",), "web\0")) == []


@pytest.mark.django_db
def test_years_months_and_days_lead_to_rows(browser: Client, boxes: dict[str, Box]) -> None:
    years = browser.get(list_of(Box)).context["cl"].drill_down()
    year, month = {"created_at__year": "2026"}, {"created_at__month": "1"}
    days = browser.get(list_of(Box), year | month).context["cl"].drill_down()

    assert [choice["title"] for choice in years["choices"]] == ["2025", "2026"]
    assert [choice["title"] for choice in days["choices"]] == [f"Jan {day}" for day in range(1, 10)]
    assert days["back"]["title"] == "2026"
    assert labels(browser, **year, **month, created_at__day="9") == ["web-2", "tests"]
    assert labels(browser, created_at__year="2025") == ["web"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    [
        {"created_at__year": "x"},
        {"created_at__year": "99999"},
        {"created_at__year": "\u00b2"},
        {"created_at__year": "9" * 30},
        {"created_at__year": "2026", "created_at__month": "13"},
        {"created_at__year": "2026", "created_at__month": "13", "created_at__day": "1"},
        {"created_at__year": "2026", "created_at__month": "2", "created_at__day": "31"},
    ],
)
def test_a_day_that_is_none_is_no_error(
    browser: Client, boxes: dict[str, Box], query: dict[str, str]
) -> None:
    assert browser.get(list_of(Box), query, follow=True).status_code == 200


@pytest.mark.django_db
def test_a_long_list_says_that_there_is_more(
    browser: Client, boxes: dict[str, Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MOST_ROWS", 3)

    page = browser.get(list_of(Box))

    assert page.context["cl"].result_count == 3
    assert "there are more" in page.content.decode()


@pytest.mark.django_db
def test_only_what_an_index_serves_is_sorted_by(browser: Client, boxes: dict[str, Box]) -> None:
    label, created = (
        f"{browser.get(list_of(Box)).context['cl'].list_display.index(name)}"
        for name in ("label", "created_at")
    )

    assert labels(browser, o=created) == ["web", "docs", "web-2", "tests"]
    assert labels(browser, o=label) == labels(browser)


@pytest.mark.django_db
@pytest.mark.parametrize(("life", "found"), [("active", ["web-2", "tests", "docs"]), ("unsettled", ["web"])])
def test_boxes_by_what_they_may_cost(
    browser: Client, boxes: dict[str, Box], life: str, found: list[str]
) -> None:
    Box.objects.filter(label="web").update(stopped_at=NOW, stop_reason="ttl_expired", state="archived")

    assert labels(browser, life=life) == found


@pytest.mark.django_db
def test_runs_whose_kill_is_not_confirmed_are_found(browser: Client) -> None:
    for number in range(2):
        Rows(number).make()
    stuck = Run.objects.order_by("id")[0]
    Run.objects.filter(pk=stuck.pk).update(kill_confirmed=False)

    found = browser.get(list_of(Run), {"kill": "unconfirmed"}).context["cl"].result_list

    assert list(found) == [stuck]


@pytest.mark.django_db
def test_a_page_leads_to_what_belongs_to_it_and_says_who_did_what(browser: Client) -> None:
    rows = Rows(0)
    rows.make()

    page = browser.get(page_of(rows.box)).content.decode()

    for row in (rows.run, rows.assignment, rows.job, rows.conversation):
        assert f'href="{page_of(row)}"' in page
    for title in ("Sightings", "Plan", "What happened"):
        assert title in page


@pytest.mark.django_db
def test_of_many_that_belong_to_it_a_page_shows_five_and_the_way_to_all(browser: Client) -> None:
    rows = Rows(0)
    rows.make()
    Run.objects.update(state="completed")
    for number in range(6):
        Run.objects.create(
            conversation=rows.conversation, conversation_box=rows.box, requesting_principal={}, command="make",
            idempotency_key=f"key-{number}", run_directory="/tmp/x", state="completed", admitted_at=NOW, deadline_at=NOW,
        )  # fmt: skip

    page = browser.get(page_of(rows.box)).content.decode()

    assert page.count("/admin/runs/run/") - 1 == 5 + 1  # one is in the sidebar
    all_of_them = f"{list_of(Run)}?conversation_box__id__exact={rows.box.pk}"
    assert all_of_them in page
    assert len(browser.get(all_of_them).context["cl"].result_list) == 7


def test_money_is_told_in_dollars() -> None:
    told = [money(value) for value in (None, 0, 1, 1500, 12_345_678_900)]

    assert told == [None, "$0.00", "$0.000001", "$0.0015", "$12,345.68"]


def test_lengths_of_time_are_told_in_words() -> None:
    told = [span(value) for value in (None, 0, 0.25, 59, 3600, 3780, 200_000)]

    assert told == [None, "0 s", "250 ms", "59 s", "1 h", "1 h 3 min", "2 d 7 h"]
    assert [age(NOW + timedelta(minutes=minutes), NOW) for minutes in (-3, 2)] == ["3 min ago", "in 2 min"]


def test_a_text_is_cut_to_its_first_line() -> None:
    assert [short("a\nb"), short("x" * 70), short(None), short("fine")] == ["a…", "x" * 59 + "…", "", "fine"]


def test_the_first_digits_of_an_id_are_a_range_of_ids() -> None:
    (wanted,) = searching._by_id("id", "abcd-12")

    assert wanted == {
        "id__gte": UUID("abcd1200-0000-0000-0000-000000000000"),
        "id__lte": UUID("abcd12ff-ffff-ffff-ffff-ffffffffffff"),
    }
