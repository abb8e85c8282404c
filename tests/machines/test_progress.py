"""What an agent says while it works is shown as it comes, but no secret that comes in two pieces."""

from __future__ import annotations

import pytest

from tests.machines.conftest import Wire
from tests.machines.delegating import taken
from work.models import Delegation, Job
from work.services import cancel_job, get_job

pytestmark = pytest.mark.django_db

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def say(wire: Wire, job: Job, *pieces: str, attempt: int = 1) -> str:
    for piece in pieces:
        wire.tell("progress", job=str(job.pk), attempt=attempt, text=piece)
    return get_job(job.pk).report or ""


@pytest.mark.parametrize("cut", [1, 3, 4, 9, 30])
def test_a_secret_in_two_pieces_is_never_shown(connected: Wire, cut: int) -> None:
    job = taken(connected)

    said = say(connected, job, f"I found {SECRET[:cut]}")
    more = say(connected, job, f"{SECRET[cut:]} in it.")

    assert SECRET[:8] not in said
    assert more == "I found [REDACTED] in it."


@pytest.mark.parametrize("word", ["words", "there", "the API key", "password", "https"])
def test_a_word_that_could_only_name_a_secret_is_shown_at_once_and_once(connected: Wire, word: str) -> None:
    job = taken(connected)

    assert say(connected, job, f"Look: {word}") == f"Look: {word}"
    assert say(connected, job, " and more.") == f"Look: {word} and more."


def test_what_was_shown_for_the_time_being_is_taken_back(connected: Wire) -> None:
    job = taken(connected)
    assert say(connected, job, "It is ghp_") == "It is ghp_"

    assert say(connected, job, SECRET[4:], ".") == "It is [REDACTED]."


def test_a_report_that_is_full_stays_as_it_is(connected: Wire) -> None:
    job = taken(connected)

    full = say(connected, job, "ä" * 3_999 + " t")

    assert len(full.encode()) == 8_000
    assert say(connected, job, "oken") == full


def test_what_is_held_back_is_readable_in_no_row(connected: Wire) -> None:
    job = taken(connected)

    say(connected, job, f"I found {SECRET[:20]}")

    kept = bytes(Delegation.objects.get(pk=job.pk).progress_state or b"")
    assert kept
    assert SECRET[:20].encode() not in kept


def test_what_was_held_back_is_told_when_the_job_ends_without_a_last_word(connected: Wire) -> None:
    job = taken(connected)
    assert say(connected, job, "Looking for ghp_abc") == "Looking for "

    ended = cancel_job(job.pk)

    assert (ended.report or "").endswith("\n\nLooking for ghp_abc")
    assert Delegation.objects.get(pk=job.pk).progress_state is None


def test_another_attempt_begins_a_text_of_its_own(connected: Wire) -> None:
    job = taken(connected)
    say(connected, job, "Looking for ghp")

    connected.connect(delegations=[])
    connected.hear()
    connected.tell("accepted", job=str(job.pk), attempt=2)

    assert say(connected, job, f"_{SECRET[4:]}.", attempt=2) == f"Looking for ghp_{SECRET[4:]}."
