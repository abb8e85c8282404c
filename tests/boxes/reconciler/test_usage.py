"""What boxes cost: the same figure wherever it is read, and what is not known never as zero."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from base.clock import database_now
from boxes import services, usage
from boxes.management.commands import box_usage
from boxes.models import Box
from boxes.reconciler import reconcile
from boxes.usage.settlement import settle_due
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
API = "/api/v1/usage"
JUNE = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def ledger(conversation: Conversation, stranger: Any) -> dict[str, Conversation]:
    """The owner has two settled boxes, one that cost nobody knows, and an active one; a stranger and a browser one each."""
    theirs, browser = ensure_conversation(stranger), ensure_conversation("a browser's key")
    settled(conversation, "a", cost=100, lifetime=60, created_at=JUNE)
    settled(conversation, "b", cost=20, lifetime=30, created_at=JUNE + timedelta(days=1))
    settled(conversation, "c", cost=None, lifetime=10, created_at=JUNE + timedelta(days=1))
    Box.objects.create(conversation=conversation, box_id="bx_d", label="d", created_at=JUNE)
    settled(theirs, "e", cost=2**62, lifetime=1, created_at=JUNE)
    settled(browser, "f", cost=2**62, lifetime=2, created_at=JUNE)
    return {"owner": conversation, "stranger": theirs, "browser": browser}


def settled(where: Conversation, label: str, *, cost: int | None, lifetime: int, created_at: datetime) -> Box:
    ended = created_at + timedelta(seconds=lifetime)
    return Box.objects.create(
        conversation=where,
        box_id=f"bx_{label}",
        label=label,
        state="archived",
        created_at=created_at,
        stopped_at=ended,
        stop_reason="user_requested",
        lifetime_seconds=lifetime,
        settled_cost_microusd=cost,
        usage_settled_at=ended,
    )


OWNERS = {"lifetime_seconds": 100, "settled_cost_microusd": 120, "boxes": 4, "unsettled_boxes": 2}


def test_no_more_groups_are_read_than_are_asked_for(ledger: dict[str, Conversation]) -> None:
    costliest = usage.grouped(Box.objects.all(), usage.Grouping.BOX, limit=2)

    assert {group.label for group in costliest} == {"e", "f"}


def test_totals_of_a_conversation_and_of_an_owner(ledger: dict[str, Conversation], owner: Any) -> None:
    assert usage.for_conversation(ledger["owner"].id) == OWNERS
    assert usage.for_owner(owner.id) == OWNERS


def test_what_was_spent_in_a_deleted_conversation_stays_spent(
    ledger: dict[str, Conversation], owner: Any
) -> None:
    Conversation.objects.filter(pk=ledger["owner"].pk).update(deleted_at=database_now())
    settled(ensure_conversation(owner), "g", cost=1, lifetime=1, created_at=JUNE)

    assert usage.for_owner(owner.id)["settled_cost_microusd"] == 121


def test_totals_of_nothing_are_zero(conversation: Conversation) -> None:
    assert usage.for_conversation(conversation.id) == dict.fromkeys(OWNERS, 0)


def test_sums_are_larger_than_any_single_figure(ledger: dict[str, Conversation]) -> None:
    assert usage.totals(Box.objects.all())["settled_cost_microusd"] == 2**63 + 120


def test_groups_add_up(ledger: dict[str, Conversation], owner: Any) -> None:
    by_owner = usage.grouped(Box.objects.all(), usage.Grouping.OWNER)
    by_day = usage.grouped(Box.objects.all(), usage.Grouping.DAY)
    by_box = usage.grouped(Box.objects.all(), usage.Grouping.BOX)

    assert {group.label: group.totals["boxes"] for group in by_owner} == {
        "owner": 4,
        "stranger": 1,
        "no account": 1,
    }
    assert [(group.key, group.totals["boxes"]) for group in by_day] == [("2026-06-02", 2), ("2026-06-01", 4)]
    assert [group.label for group in by_box[:3]] in (["e", "f", "a"], ["f", "e", "a"])
    for groups in (by_owner, by_day, by_box):
        for name, total in usage.totals(Box.objects.all()).items():
            assert sum(group.totals[name] for group in groups) == total  # type: ignore[literal-required]


def test_a_day_is_a_day_of_utc(conversation: Conversation) -> None:
    settled(conversation, "late", cost=1, lifetime=1, created_at=datetime(2026, 6, 1, 23, 59, tzinfo=UTC))

    assert [group.key for group in usage.grouped(Box.objects.all(), usage.Grouping.DAY)] == ["2026-06-01"]


@pytest.mark.parametrize("grouping", list(usage.Grouping))
def test_totals_and_groups_are_one_query_each(
    ledger: dict[str, Conversation], grouping: usage.Grouping
) -> None:
    with CaptureQueriesContext(connection) as queries:
        usage.totals(Box.objects.all())
        usage.grouped(Box.objects.all(), grouping)

    assert len(queries) == 2


# over HTTP


def test_the_api_tells_a_caller_their_own(ledger: dict[str, Conversation], owner: Any, api_of: Any) -> None:
    answer = api_of(owner).get(f"{API}?group=box").json()

    assert {name: answer[name] for name in OWNERS} == OWNERS
    assert {group["name"]: (group["settled_cost_microusd"], group["unsettled_boxes"]) for group in answer["groups"]} == {
        "a": (100, 0),
        "b": (20, 0),
        "c": (0, 1),
        "d": (0, 1),
    }  # fmt: skip
    assert answer["groups_truncated"] is False


def test_the_api_tells_nobody_of_others(ledger: dict[str, Conversation], owner: Any, api_of: Any) -> None:
    client, theirs = api_of(owner), ledger["stranger"].id

    assert client.get(f"{API}?conversation={theirs}").status_code == 404
    assert client.get(f"{API}?all=true").json()["boxes"] == 4


def test_staff_see_everybodys(ledger: dict[str, Conversation], staff: Any, api_of: Any) -> None:
    client = api_of(staff)

    assert client.get(f"{API}?all=true").json()["boxes"] == 6
    assert client.get(f"{API}?all=true&conversation={ledger['browser'].id}").json()["boxes"] == 1
    assert client.get(API).json()["boxes"] == 0


@pytest.mark.parametrize(
    ("query", "boxes"),
    [
        ("created_after=2026-06-02T00:00:00Z", 2),
        ("created_before=2026-06-02T00:00:00Z", 2),
        ("created_after=2026-06-01T12:00:00Z&created_before=2026-06-01T12:00:00Z", 0),
    ],
)
def test_the_api_can_be_asked_about_a_time(
    ledger: dict[str, Conversation], owner: Any, api_of: Any, query: str, boxes: int
) -> None:
    assert api_of(owner).get(f"{API}?{query}").json()["boxes"] == boxes


@pytest.mark.parametrize("query", ["group=colour", "conversation=x", "created_after=soon"])
def test_a_bad_question_is_named(owner: Any, api_of: Any, query: str) -> None:
    response = api_of(owner).get(f"{API}?{query}")

    assert response.status_code == 422
    assert query.split("=")[0] in response.json()["error"]["fields"] or "conversation" in query


def test_the_number_of_groups_is_bounded(
    ledger: dict[str, Conversation], owner: Any, api_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxes.api.usage.MOST_GROUPS", 3)

    answer = api_of(owner).get(f"{API}?group=box").json()

    assert (len(answer["groups"]), answer["groups_truncated"], answer["boxes"]) == (3, True, 4)


# in a terminal


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("box_usage", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_a_table_with_a_total(ledger: dict[str, Conversation]) -> None:
    lines = printed("--owner", "owner", "--group", "box").splitlines()

    assert lines[0].split() == ["BOX", "BOXES", "NOT", "SETTLED", "TIME", "COST", "(USD)"]
    assert ["a", "1", "0", "0:01:00", "0.000100"] in [line.split() for line in lines]
    assert lines[-2].split() == ["total", "4", "2", "0:01:40", "0.000120"]
    assert lines[-1] == "the cost of 2 boxes is not known (yet) and not in the sums"


def test_the_command_exports_for_a_spreadsheet(ledger: dict[str, Conversation]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("--csv", "--group", "day"))))

    assert [row["key"] for row in rows] == ["2026-06-02", "2026-06-01"]
    assert rows[0]["settled_cost_microusd"] == "20"
    assert rows[0]["unsettled_boxes"] == "1"


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@x"])
def test_a_label_is_no_formula(conversation: Conversation, label: str) -> None:
    settled(conversation, label, cost=1, lifetime=1, created_at=JUNE)

    (row,) = csv.DictReader(io.StringIO(printed("--csv", "--group", "box")))

    assert row["name"] == f"'{label}"


def test_the_command_exports_for_programs(ledger: dict[str, Conversation], owner: Any) -> None:
    told = json.loads(printed("--json", "--owner", "OWNER"))

    assert {name: told[name] for name in OWNERS} == OWNERS
    assert told["groups"] == [{"key": str(owner.pk), "name": "owner", **OWNERS}]


def test_a_label_cannot_play_with_the_terminal(conversation: Conversation) -> None:
    settled(conversation, "\x1b[2J[bold]x", cost=1, lifetime=1, created_at=JUNE)

    assert "\x1b" not in (table := printed("--group", "box"))
    assert "[bold]x" in table


@pytest.mark.parametrize(
    ("arguments", "boxes"),
    [
        (("--since", "2026-06-02"), 2),
        (("--until", "2026-06-02"), 4),
        (("--owner", "nobody"), 0),
    ],
)
def test_the_command_can_be_narrowed(
    ledger: dict[str, Conversation], arguments: tuple[str, ...], boxes: int
) -> None:
    assert json.loads(printed("--json", *arguments))["boxes"] == boxes


@pytest.mark.parametrize(
    "arguments",
    [("--since", "yesterday"), ("--conversation", "x"), ("--group", "colour"), ("--csv", "--json")],
)
def test_a_bad_argument_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        printed(*arguments)


def test_a_bad_argument_is_one_sentence_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        box_usage.Command().run_from_argv(["manage.py", "box_usage", "--since", "yesterday"])

    assert ended.value.code == 2
    assert "argument --since: a day is written like 2026-01-31, not yesterday" in capsys.readouterr().err


# one rule, everywhere


def test_the_end_of_the_bill_is_the_same_in_the_api_the_admin_and_the_export(
    pair: Pair,
    provider: FakeProvider,
    owner: Any,
    staff: Any,
    api_of: Any,
) -> None:
    box = pair(age=3600 * 2, row={"extended_until": None}, stop_takes=450, refuse_stop="stop_failed")
    reconcile()
    provider.boxes["bx_8bhkse3n"].refuse_stop = None
    Box.objects.update(next_reconciliation_at=None)
    reconcile()  # the provider takes it now, and confirms it seven and a half minutes later
    with pytest.raises(Exception, match="stopped"):
        services.stop_box(box.conversation_id, str(box.pk))  # asked for twice
    provider.clock.advance(451)
    Box.objects.update(next_settlement_at=database_now() - timedelta(seconds=1))
    settle_due()

    row = again(box)
    assert row.stopped_at is not None
    assert row.lifetime_seconds == int((row.stopped_at - row.created_at).total_seconds())
    figures = (row.lifetime_seconds, row.settled_cost_microusd)
    assert figures[1] == provider.boxes["bx_8bhkse3n"].cost_microusd
    (exported,) = csv.DictReader(io.StringIO(printed("--csv", "--group", "box")))
    shown = api_of(owner).get(f"/api/v1/boxes/{box.pk}").json()
    total = api_of(owner).get(API).json()
    browser = Client()
    browser.force_login(staff)
    page = browser.get(f"/admin/boxes/box/{box.pk}/change/").content.decode()
    assert (int(exported["lifetime_seconds"]), int(exported["settled_cost_microusd"])) == figures
    assert (shown["lifetime_seconds"], shown["settled_cost_microusd"]) == figures
    assert (total["lifetime_seconds"], total["settled_cost_microusd"]) == figures
    assert all(f">{figure}<" in page for figure in figures)
