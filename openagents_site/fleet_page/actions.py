"""What an owner does on the page: the same services, limits and idempotency as through the API."""

from __future__ import annotations

from uuid import UUID

from accounts import idempotency, rates
from accounts.idempotency import Answer
from accounts.models import User
from boxes import selectors, services
from boxes.api.boxes import CREATES_PER_MINUTE
from boxes.errors import BoxNotFound
from boxes.models import Box
from conversations.services import conversation_of
from runs import services as run_services
from runs.api import RUNS_PER_MINUTE
from runs.errors import RunNotFound
from runs.models import Run

TOO_MANY = "box_api_rate_limited"


def box_of(owner: User, box_id: UUID) -> Box:
    """The owner's box. Raises BoxNotFound for another owner's just as for one that does not exist."""
    box = selectors.find_owned(owner, box_id)
    if box is None:
        raise BoxNotFound
    return box


def run_of(owner: User, run_id: UUID) -> Run:
    """The owner's run with its box. Raises RunNotFound for another owner's just as for one that does not exist."""
    mine = Run.objects.filter(conversation__visitor__user=owner, pk=run_id).defer("output", "output_state")
    run = mine.select_related("conversation_box").first()
    if run is None:
        raise RunNotFound
    return run


def create(owner: User, label: str, key: str) -> None:
    """Ask for a box; the same key asks once. Raises as `boxes.services.create_box`."""
    rates.count(f"user:{owner.pk}", "box_create", CREATES_PER_MINUTE, code=TOO_MANY)
    wanted = label.strip() or None

    def make(ticket: UUID) -> Answer:
        conversation = conversation_of(owner)
        made = services.create_box(conversation.id, label=wanted, create_key=f"page-{ticket}")
        return Answer(303, {"box": str(made.pk)})

    idempotency.once(owner, "POST /fleet/boxes", idempotency.checked_key(key), {"label": wanted}, make)


def stop(owner: User, box_id: UUID) -> Box:
    """Stop the owner's box. Raises as `boxes.services.stop_box`."""
    box = box_of(owner, box_id)
    return services.stop_box(box.conversation_id, str(box.pk))


def start(owner: User, box_id: UUID, command: str, key: str) -> Run:
    """Start a run on the owner's box; the same key starts one. Raises as `runs.services.start_run`."""
    rates.count(f"user:{owner.pk}", "run_create", RUNS_PER_MINUTE, code=TOO_MANY)
    box = box_of(owner, box_id)
    lines = command.replace(
        "\r\n", "\n"
    )  # a form sends every end of line so, and a shell takes it for a character
    principal = {"type": "user", "id": str(owner.pk)}
    return run_services.start_run(box.conversation_id, box, principal, lines, key)


def cancel(owner: User, run_id: UUID) -> Run:
    """Ask for the end of the owner's run."""
    return run_services.cancel(run_of(owner, run_id))
