"""One command, waited for: bounds, activity, and what is shown of its output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from base.clock import database_now
from boxes import services
from boxes.errors import BoxNotFound, BoxNotReady, BoxStopped, InvalidRequest, ProviderError
from boxes.models import Box
from conversations.models import Conversation
from tests.boxes.writers.conftest import MakeBox
from tests.boxes.writers.driving import again
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db
BOX_ID = "bx_8bhkse3n"


@pytest.fixture
def box(make_box: MakeBox, provider: FakeProvider) -> Box:
    provider.add_box(BOX_ID)
    provider.execute_commands()
    return make_box(BOX_ID, label="web")


def run(box: Box, command: str, **options: Any) -> services.CommandOutput:
    return services.run_command(box.conversation_id, "web", command, **options)


def test_it_tells_how_the_command_ended(box: Box) -> None:
    output = run(box, "echo out; echo err >&2; exit 3")

    assert output == services.CommandOutput(3, "out\n", "err\n", timed_out=False, truncated=False)


def test_a_command_that_takes_too_long_is_ended(box: Box) -> None:
    output = run(box, "echo begun; sleep 600", timeout_seconds=1)

    assert output.timed_out
    assert output.exit_status != 0


@pytest.mark.parametrize(
    "command",
    ["", " \n\t ", "a\0b", "\ud800", "x" * 4001, "é" * 2001, None, 7, b"true"],
    ids=lambda c: repr(c)[:12],
)
def test_what_is_no_command_is_refused(box: Box, provider: FakeProvider, command: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        run(box, command)

    assert refused.value.code == "invalid_command"
    assert provider.count() == 0


def test_the_longest_command_is_taken(box: Box) -> None:
    assert run(box, "echo " + "x" * 3995).exit_status == 0


@pytest.mark.parametrize("timeout", [0, -1, 571, 1.5, "60", True, None])
def test_what_is_no_timeout_is_refused(box: Box, provider: FakeProvider, timeout: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        run(box, "true", timeout_seconds=timeout)

    assert refused.value.code == "invalid_command_timeout"


def test_a_longer_command_is_started_detached_and_polled(box: Box, provider: FakeProvider) -> None:
    output = run(box, "echo done", timeout_seconds=570)

    assert (output.exit_status, output.stdout) == (0, "done\n")
    assert provider.calls("command")[0].json["detached"] is True
    assert provider.count("command_status") >= 1


def test_it_counts_as_activity_before_and_after(box: Box) -> None:
    begun = database_now()

    with CaptureQueriesContext(connection) as queries:
        run(box, "true")

    stamps = [query for query in queries.captured_queries if query["sql"].startswith("UPDATE")]
    assert len(stamps) == 2
    last = again(box).last_activity_at
    assert last is not None
    assert last > begun
    assert again(box).idle_since == last


def test_a_command_that_fails_counts_as_activity_too(box: Box, provider: FakeProvider) -> None:
    provider.next("command", status=502, code="box_direct_failed")

    with pytest.raises(ProviderError):
        run(box, "true")

    assert again(box).last_activity_at is not None


def test_looking_is_no_activity(box: Box) -> None:
    services.get_box(box.conversation_id, "web")
    services.list_boxes(box.conversation_id)

    assert again(box).last_activity_at is None
    assert again(box).idle_since == box.created_at


def test_secrets_are_struck_out(box: Box, box_api: Callable[..., None]) -> None:
    box_api(secret_values=("the-installations-secret",))

    output = run(box, "echo sk-or-v1-0123456789abcdef0123; echo the-installations-secret; echo plain >&2")

    assert output.stdout == "[REDACTED]\n[REDACTED]\n"
    assert output.stderr == "plain\n"


def test_long_output_keeps_its_end(box: Box) -> None:
    output = run(box, "for n in $(seq 1 6000); do echo line-$n; done")

    assert output.truncated
    assert len(output.stdout.encode()) <= 24_576
    assert output.stdout.endswith("line-6000\n")


def test_what_cannot_be_stored_is_shown_by_a_mark(box: Box) -> None:
    assert "\0" not in run(box, r"printf 'a\000b\377c'").stdout


def test_an_unknown_box_is_not_owned(conversation: Conversation, provider: FakeProvider) -> None:
    with pytest.raises(BoxNotFound) as refused:
        services.run_command(conversation.id, "nothing", "true")

    assert refused.value.code == "box_not_owned"


def test_a_box_that_is_not_there_or_not_ready_takes_no_commands(
    conversation: Conversation, make_box: MakeBox, provider: FakeProvider
) -> None:
    make_box("bx_1", label="starting", state="provisioning")
    make_box(None, label="reserved", state="provisioning")
    make_box("bx_2", label="stopped", stopped_at=database_now())

    for label, error in [("starting", BoxNotReady), ("reserved", BoxNotReady), ("stopped", BoxStopped)]:
        with pytest.raises(error):
            services.run_command(conversation.id, label, "true")
    assert provider.count() == 0
