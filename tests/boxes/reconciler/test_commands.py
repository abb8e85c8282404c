"""What operators type."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from base import notify
from base.locks import held_by_session
from boxes.models import Box, ReconciliationEvent
from boxes.reconciler import reconcile
from boxes.reconciler.reconcile import PASS_LOCK
from boxes.services import provider_ownership_marker
from conversations.models import Conversation
from tests.boxes.reconciler.conftest import Pair, again
from tests.fakes.provider import FakeProvider
from tests.fakes.world import FakeBox

pytestmark = pytest.mark.django_db


def run(name: str, *arguments: str) -> tuple[int, str]:
    """Exit status and output of a command."""
    out = io.StringIO()
    try:
        call_command(name, *arguments, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return error.returncode, str(error)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def lines_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


# reconcile_boxes


@pytest.fixture
def fleet(pair: Pair, make_row: Pair, provider: FakeProvider) -> list[Box]:
    """A healthy box, an expired one, one that is gone, and a leak."""
    provider.add_box("bx_99999999", name=provider_ownership_marker(), age=3600)
    return [
        pair("bx_22222222", row={"label": "healthy"}),
        pair("bx_22222223", age=3601, row={"label": "expired"}),
        make_row("bx_22222224", label="gone"),
    ]


def test_a_pass_by_hand_says_what_it_did(fleet: list[Box]) -> None:
    status, text = run("reconcile_boxes")

    assert status == 0
    assert "bx_22222223 expired stop (ttl_expired) its time was up" in " ".join(text.split())
    assert "bx_22222224 gone end (provider_missing) gone at the provider" in " ".join(text.split())
    assert "healthy" not in text
    assert "stopped 1" in text
    assert "leaks_stopped 1" in text


def test_a_pass_with_nothing_to_do_says_so(provider: FakeProvider) -> None:
    assert run("reconcile_boxes") == (0, "nothing to do\n")


def test_a_pass_can_be_read_by_programs(fleet: list[Box]) -> None:
    status, text = run("reconcile_boxes", "--json")

    told = json.loads(text)
    assert status == 0
    assert (told["boxes"], told["stopped"], told["ended"], told["incomplete"]) == (3, 1, 1, False)


def test_a_dry_run_says_what_would_be_done_and_why(fleet: list[Box], provider: FakeProvider) -> None:
    status, text = run("reconcile_boxes", "--dry-run")

    words = " ".join(text.split())
    assert status == 0
    assert "bx_22222223 expired stop (ttl_expired) its time was up" in words
    assert "bx_99999999 stop it has our name, and no row claims it" in words
    assert "3 rows, 3 boxes at the provider, 1 needs nothing; nothing was done" in words
    assert all(again(box).last_reconciled_at is None for box in fleet)
    assert not ReconciliationEvent.objects.exists()
    assert {call.request.method for call in provider.calls()} == {"GET"}


def test_a_dry_run_shows_everything_if_asked_to(fleet: list[Box]) -> None:
    _, text = run("reconcile_boxes", "--dry-run", "--all")

    assert ["bx_22222222", "healthy", "observe", "observed"] in lines_of(text)


def test_a_dry_run_can_be_read_by_programs(fleet: list[Box]) -> None:
    _, text = run("reconcile_boxes", "--dry-run", "--json")

    told = json.loads(text)
    assert [entry["does"] for entry in told["boxes"]] == [
        "stop (ttl_expired)",
        "observe",
        "end (provider_missing)",
    ]
    assert told["leaks"][0]["box_id"] == "bx_99999999"
    assert told["mass_absence"] is False


def test_a_dry_run_says_what_the_first_pass_would_hold_back(make_row: Pair, provider: FakeProvider) -> None:
    for digit in "3456789":
        make_row(f"bx_2222222{digit}", label=f"box-{digit}")

    assert "the first pass to see it writes none of them off" in run("reconcile_boxes", "--dry-run")[1]


def test_an_incomplete_pass_says_so(fleet: list[Box], provider: FakeProvider) -> None:
    provider.always("get", box="bx_22222222", drop_before=True)

    status, text = run("reconcile_boxes")

    assert status == 1
    assert "bx_22222222 healthy back off box_unreachable" in " ".join(text.split())
    assert "incomplete: what is left is tried again in a later pass" in text
    assert run("reconcile_boxes", "--dry-run", "--json")[0] == 0  # it is backing off


def test_an_incomplete_dry_run_says_so(fleet: list[Box], provider: FakeProvider) -> None:
    provider.always("get", box="bx_22222222", status=500)

    status, text = run("reconcile_boxes", "--dry-run")

    assert status == 1
    assert "unusable answer: box_provider_refused" in text


def test_another_pass_at_work_is_named(fleet: list[Box], provider: FakeProvider) -> None:
    with notify.own_connection() as link, held_by_session(link, PASS_LOCK):
        status, text = run("reconcile_boxes")

    assert (status, text) == (1, "another pass is at work; nothing was done here\n")
    assert provider.count() == 0


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"status": 401}, "box_unauthorized: The provider does not accept our key."),
        ({"drop_before": True}, "box_unreachable: The provider could not be reached."),
        ({"html": True}, "box_response_invalid: The provider's answer could not be understood."),
    ],
)
def test_a_list_that_could_not_be_had_is_refused(
    fleet: list[Box], provider: FakeProvider, arguments: tuple[str, ...], fault: dict[str, Any], said: str
) -> None:
    provider.always("list", **fault)

    assert run("reconcile_boxes", *arguments) == (2, said)


def test_without_a_key_it_is_refused(box_api: Callable[..., None], db: None) -> None:
    box_api(api_key="")

    assert run("reconcile_boxes")[0] == 2


def test_a_label_cannot_play_with_the_terminal(pair: Pair) -> None:
    pair(age=3601, row={"label": "\x1b[2J[red]x"})

    _, text = run("reconcile_boxes")

    assert "\x1b" not in text
    assert "[red]x" in text


# leaks


@pytest.fixture
def theirs(provider: FakeProvider) -> FakeBox:
    box = provider.add_box("bx_99999999", name="developer-box", age=3600)
    reconcile()
    return box


def leak() -> ReconciliationEvent:
    return ReconciliationEvent.objects.get(event_type="leak")


def test_open_leaks_are_listed(theirs: FakeBox, staff: Any) -> None:
    status, text = run("leaks", "list")

    assert status == 0
    assert lines_of(text)[1][:5] == [str(leak().pk), "bx_99999999", "not", "ours", "ready"]
    run("leaks", "dismiss", "bx_99999999", "--by", "staff")
    assert run("leaks", "list") == (0, "no open leaks\n")
    assert "dismissed" in run("leaks", "list", "--all")[1]


def test_leaks_can_be_read_by_programs(theirs: FakeBox) -> None:
    _, text = run("leaks", "list", "--json")

    assert json.loads(text)["provider_box_id"] == "bx_99999999"


@pytest.mark.parametrize("limit", ["-1", "0", "9" * 30])
def test_any_number_of_leaks_can_be_asked_for(theirs: FakeBox, limit: str) -> None:
    assert ("bx_99999999" in run("leaks", "list", "--limit", limit)[1]) is (limit[0] == "9")


def test_no_leaks_are_said(db: None) -> None:
    assert run("leaks", "list", "--all") == (0, "no leaks\n")


@pytest.mark.parametrize("by_id", [True, False])
def test_a_leak_is_stopped(theirs: FakeBox, staff: Any, by_id: bool) -> None:
    name = str(leak().pk) if by_id else "bx_99999999"

    assert run("leaks", "stop", name, "--by", "staff") == (0, "bx_99999999: stopped\n")
    assert (leak().handled_by, theirs.stops) == (staff, 1)


def test_a_leak_is_adopted(theirs: FakeBox, staff: Any, conversation: Conversation) -> None:
    done = run("leaks", "adopt", "bx_99999999", str(conversation.id), "--label", "mine", "--by", "staff")

    assert done == (0, "bx_99999999: adopted\n")
    assert Box.objects.get().label == "mine"


def test_a_leak_that_was_handled_is_refused(theirs: FakeBox, staff: Any) -> None:
    run("leaks", "dismiss", "bx_99999999", "--by", "staff")

    assert run("leaks", "stop", "bx_99999999", "--by", "staff") == (
        1,
        "leak_handled: The leak was handled already.",
    )


def test_a_stop_that_the_provider_refuses_is_said(theirs: FakeBox, staff: Any) -> None:
    theirs.refuse_stop = "forbidden"

    status, text = run("leaks", "stop", "bx_99999999", "--by", "staff")

    assert (status, text.split(":")[0]) == (1, "box_billing_required")
    assert leak().handled_at is None


@pytest.mark.parametrize("name", ["bx_00000000", "7d444840-9dc0-11d1-b245-5ffdce74fad2", "x"])
def test_a_leak_that_is_not_there_is_said(theirs: FakeBox, staff: Any, name: str) -> None:
    assert run("leaks", "stop", name, "--by", "staff") == (3, f"there is no leak {name}")


@pytest.mark.parametrize("who", ["owner", "nobody"])
def test_only_staff_handle_leaks(theirs: FakeBox, owner: Any, who: str) -> None:
    status, text = run("leaks", "dismiss", "bx_99999999", "--by", who)

    assert (status, text) == (1, f"there is no staff member called {who}")
    assert leak().handled_at is None


def test_what_is_missing_is_named(theirs: FakeBox) -> None:
    assert run("leaks", "stop", "bx_99999999")[0] == 1
    assert run("leaks")[0] == 1
