"""The fleet: what a conversation has and waits for, in one answer and in a terminal."""

from __future__ import annotations

import io
import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rich.console import Console

from base.clock import database_now
from boxes.console import moment
from boxes.models import Box, FanoutItem, FanoutRequest
from conversations.models import Conversation
from conversations.services import ensure_conversation
from openagents_site.management.commands import fleet
from runs.models import Run

pytestmark = pytest.mark.django_db
API = "/api/v1/fleet"
SEQUENCE = itertools.count(1)
TOKEN = "ghp_" + "a" * 36


@pytest.fixture
def conversation(owner: Any) -> Conversation:
    return ensure_conversation(owner)


def box(conversation: Conversation, label: str, *, age: float = 60, **fields: Any) -> Box:
    values = {
        "box_id": f"bx_{label}",
        "state": "ready",
        "setup_status": "done",
        "created_at": database_now() - timedelta(seconds=age),
    }
    return Box.objects.create(conversation=conversation, label=label, **(values | fields))


def run(on: Box, key: str, *, age: float = 30, **fields: Any) -> Run:
    now = database_now()
    values = {
        "requesting_principal": {"type": "user", "id": "1"},
        "command": "make",
        "run_directory": "/home/user/run",
        "admitted_at": now - timedelta(seconds=age),
        "deadline_at": now + timedelta(hours=1),
    }
    return Run.objects.create(
        conversation=on.conversation, conversation_box=on, idempotency_key=key, **(values | fields)
    )


def ended(state: str = "completed", **fields: Any) -> dict[str, Any]:
    output = fields.pop("output", "")
    return {
        "state": state,
        "finished_at": database_now(),
        "output": output,
        "last_output_offset": len(output),
        **fields,
    }


def plan(conversation: Conversation, queued: int, cap: int = 7) -> FanoutRequest:
    limits = {"conversation_active_limit": cap, "budgeted": False}
    made = FanoutRequest.objects.create(
        conversation=conversation,
        requesting_principal={"type": "user"},
        requested_count=queued or 1,
        effective_limits=limits,
    )
    FanoutItem.objects.bulk_create(
        FanoutItem(
            request=made,
            conversation=conversation,
            position=number,
            queue_sequence=next(SEQUENCE),
            label=f"{made.pk.hex[:4]}-{number}",
            state="queued",
            queue_reason="conversation_active_limit",
            requesting_principal={"type": "user"},
            queued_at=database_now(),
        )
        for number in range(queued)
    )
    return made


def test_an_empty_fleet_is_shown_with_its_cap(owner: Any, conversation: Conversation, api_of: Any) -> None:
    assert api_of(owner).get(API).json() == {
        "conversation": str(conversation.id),
        "admitted_count": 0,
        "effective_cap": 2,
        "effective_limits": {"conversation_active_limit": 2},
        "maximum_boxes": 10,
        "boxes": [],
        "queued": [],
        "queued_truncated": False,
    }


def test_boxes_come_with_their_newest_run(owner: Any, conversation: Conversation, api_of: Any) -> None:
    one = box(conversation, "one")
    run(one, "old", age=50, **ended("failed", exit_status=1))
    newest = run(one, "new", **ended(output="hello\n", exit_status=0))
    box(conversation, "two", age=50)

    first, second = api_of(owner).get(API).json()["boxes"]

    assert (first["label"], first["box_id"], first["state"], second["run"]) == (
        "one",
        "bx_one",
        "ready",
        None,
    )
    assert first["age_seconds"] == pytest.approx(60, abs=10)
    assert first["run"] == {
        "id": str(newest.pk),
        "state": "completed",
        "is_terminal": True,
        "exit_status": 0,
        "failure_reason": None,
        "output": "hello\n",
    }


def test_active_boxes_come_first_then_the_oldest_and_ten_at_most(
    owner: Any, conversation: Conversation, api_of: Any
) -> None:
    now = database_now()
    for number in range(8):
        box(conversation, f"stopped-{number}", age=1000 - number, stopped_at=now, state="archived")
    for number in range(4):
        box(conversation, f"active-{number}", age=100 - number)

    answer = api_of(owner).get(API).json()

    assert answer["admitted_count"] == 4
    assert [shown["label"] for shown in answer["boxes"]] == [
        *[f"active-{number}" for number in range(4)],
        *[f"stopped-{number}" for number in range(6)],
    ]


def test_an_age_is_never_negative_and_ends_with_the_box(
    owner: Any, conversation: Conversation, api_of: Any
) -> None:
    box(conversation, "early", age=-3600)
    stopped = database_now() - timedelta(seconds=100)
    box(conversation, "gone", age=160, stopped_at=stopped, state="archived")

    early, gone = api_of(owner).get(API).json()["boxes"]

    assert (early["age_seconds"], gone["age_seconds"]) == (0, pytest.approx(60, abs=5))


def test_what_waits_is_shown_in_order_and_a_hundred_at_most(
    owner: Any, conversation: Conversation, api_of: Any
) -> None:
    made = plan(conversation, 101)

    answer = api_of(owner).get(API).json()

    assert (answer["effective_cap"], answer["queued_truncated"], len(answer["queued"])) == (7, True, 100)
    assert [item["position"] for item in answer["queued"]] == list(range(100))
    first = answer["queued"][0]
    assert (first["plan"], first["label"], first["queue_reason"]) == (
        str(made.pk),
        f"{made.pk.hex[:4]}-0",
        "conversation_active_limit",
    )


def test_the_newest_plan_says_the_cap(owner: Any, conversation: Conversation, api_of: Any) -> None:
    plan(conversation, 0, cap=3)
    plan(conversation, 0, cap=9)

    assert api_of(owner).get(API).json()["effective_cap"] == 9


def test_secrets_are_struck_out_and_output_is_bounded(
    owner: Any, conversation: Conversation, api_of: Any
) -> None:
    one = box(conversation, f"box {TOKEN}", box_id="bx_one")
    run(one, "k", **ended(output="x" * 5000 + f"\ntoken {TOKEN}\n", failure_reason=f"said {TOKEN}"))

    shown = api_of(owner).get(API).json()["boxes"][0]

    assert TOKEN not in str(shown)
    assert "[REDACTED]" in shown["label"]
    assert shown["run"]["output"].endswith("token [REDACTED]\n")
    assert len(shown["run"]["output"]) <= 2048


def test_others_are_not_shown(
    owner: Any, stranger: Any, staff: Any, conversation: Conversation, api_of: Any
) -> None:
    box(conversation, "one")
    address = f"{API}?conversation={conversation.id}"

    refused = api_of(stranger).get(address)
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "conversation_not_found")
    assert api_of(stranger).get(API).json()["boxes"] == []
    assert api_of(staff).get(address).status_code == 404
    assert len(api_of(staff).get(f"{address}&all=true").json()["boxes"]) == 1
    missing = f"{API}?all=true&conversation=7d444840-9dc0-11d1-b245-5ffdce74fad2"
    assert api_of(staff).get(missing).status_code == 404


@pytest.mark.parametrize("wanted", ["x", "7d444840"])
def test_a_bad_conversation_is_named(owner: Any, api_of: Any, wanted: str) -> None:
    assert api_of(owner).get(f"{API}?conversation={wanted}").status_code == 422


def test_it_costs_the_same_however_large_the_fleet_is(
    owner: Any, conversation: Conversation, api_of: Any
) -> None:
    client = api_of(owner)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(API).status_code == 200
        return len(captured)

    run(box(conversation, "one"), "k")
    plan(conversation, 1)
    queries()  # the token's use is noted once a minute
    few = queries()
    for number in range(12):
        run(box(conversation, f"box-{number}"), f"k-{number}")
    plan(conversation, 50)

    assert queries() == few


# in a terminal


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("fleet", "--once", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_shows_active_boxes_of_everybody(
    conversation: Conversation, stranger: Any, owner: Any
) -> None:
    run(box(conversation, "one"), "k", **ended(output="first\nlast\n", exit_status=3, state="failed"))
    box(ensure_conversation(stranger), "two")
    box(conversation, "gone", stopped_at=database_now(), stop_reason="user_requested", state="archived")

    text = printed()

    assert text.startswith("2 active boxes at ")
    (line,) = [line for line in text.splitlines() if line.startswith("one")]
    assert "bx_one" in line
    assert line.split()[-3:] == ["failed", "(3)", "last"]
    assert "two" in text
    assert "gone" not in text


def test_the_command_can_be_narrowed_and_widened(
    conversation: Conversation, stranger: Any, owner: Any
) -> None:
    box(conversation, "mine")
    theirs = ensure_conversation(stranger)
    box(theirs, "theirs")
    box(conversation, "gone", stopped_at=database_now(), stop_reason="ttl_expired", state="archived")

    assert "theirs" not in printed("--owner", "owner")
    assert "mine" not in printed("--conversation", str(theirs.id))
    assert "ttl_expired" in printed("--all")
    assert len(printed("--limit", "1").splitlines()) == 3


@pytest.mark.parametrize("limit", ["1", "9" * 30])
def test_any_number_of_boxes_can_be_asked_for(conversation: Conversation, limit: str) -> None:
    box(conversation, "one")

    assert printed("--limit", limit).startswith("1 active box at ")


def test_an_empty_fleet_is_said(db: None) -> None:
    assert printed().startswith("0 active boxes at ")


def test_a_label_cannot_play_with_the_terminal(conversation: Conversation) -> None:
    run(box(conversation, "\x1b[2J[red]x"), "k", **ended(output="\x1b]0;title\x07done"))

    text = printed()

    assert "\x1b" not in text
    assert "[red]x" in text


def test_a_bad_argument_is_refused(db: None) -> None:
    with pytest.raises(CommandError):
        printed("--conversation", "x")


def test_it_goes_on_until_it_is_interrupted(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    box(conversation, "one")
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        box(conversation, f"more-{len(naps)}")
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", nap)
    out = io.StringIO()

    call_command("fleet", "--every", "0.5", stdout=out)

    assert naps == [0.5] * 3
    headings = [line.partition(" at ")[0] for line in out.getvalue().splitlines() if " UTC" in line]
    assert headings == [
        "1 active box",
        "2 active boxes",
        "3 active boxes",
    ]  # each was printed when it was there
    assert out.getvalue().endswith("\n")


@pytest.mark.parametrize("every", ["0", "0.4", "-1", "nan", "inf", "x", "3601"])
def test_a_pause_that_is_none_is_refused(every: str) -> None:
    with pytest.raises(CommandError, match=r"must be a number from 0\.5 to 3600"):
        printed(f"--every={every}")


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_id_and_no_moment_is_cut_however_narrow_the_terminal_is(
    conversation: Conversation, width: int
) -> None:
    one = box(conversation, "one", box_id="bx_bfrskvpr")
    run(one, "k", **ended(output="x" * 70, exit_status=0))
    options = {"all": False, "owner": None, "conversation": None, "limit": 5}
    console = Console(file=io.StringIO(), width=width)

    console.print(fleet._shown(options, width))

    lines = console.file.getvalue().splitlines()
    assert len(lines) == 3
    assert "bx_bfrskvpr" in lines[2]
    ends = moment(fleet.fleet_boxes(Box.objects.all(), 1)[0].expires_at)
    assert ("ENDS" in lines[1]) == (ends in lines[2])
