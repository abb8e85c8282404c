"""What an owner's installation looks like after a month: rows for pages and pictures."""

from __future__ import annotations

from datetime import datetime, timedelta

from accounts.models import User
from base.clock import database_now
from boxes import heartbeats
from boxes.models import Box, ScheduleSlot
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.fleet_page.conftest import make_box, make_run


def lived_in(owner: User) -> Box:
    """A month of an owner's boxes, and a few in many states now; returns the one whose run goes on."""
    conversation, now = ensure_conversation(owner), database_now()
    a_month_of(conversation, now)
    heartbeats.stamp("scheduler")
    far = {
        "next_at": now + timedelta(hours=1),
        "finished_at": now,
    }  # no pass looks for boxes that are nowhere
    times = {"interval_ms": 60_000, "initial_delay_ms": 60_000}
    ScheduleSlot.objects.update_or_create(name="reconcile", defaults=times | far)
    make_box(conversation, "slow-start", age=700, state="provisioning", estimated_burn_rate_microusd=100_000)
    docs = make_box(conversation, "docs", age=600, estimated_burn_rate_microusd=100_000)
    make_run(docs, "b", state="completed", exit_status=0, command="make html", output="build succeeded.\n")
    box = make_box(conversation, "web-tests", age=200, estimated_burn_rate_microusd=100_000)
    command, dots = "npm ci && npm test -- --reporter=dot", "." * 212
    output = f"added 312 packages in 9s\n\n> test\n> vitest --reporter=dot\n\n{dots}"
    make_run(box, "a", age=90, state="running", command=command, output=output, next_step_at=None)
    return box


def a_month_of(conversation: Conversation, now: datetime) -> None:
    """Boxes that stopped in the last 30 days, each with one run."""
    ends = ["completed"] * 5 + ["failed", "cancelled", "timed_out"]
    for number in range(60):
        at = now - timedelta(hours=2 + 11 * number + number * number % 7)
        ended = {
            "state": "archived",
            "stopped_at": at,
            "stop_reason": "idle_timeout",
            "lifetime_seconds": 2400,
        }
        cost = {"settled_cost_microusd": 60_000 + 17_000 * (number * number % 11), "usage_settled_at": at}
        age = (now - at).total_seconds() + 2400
        box = make_box(conversation, f"task-{60 - number}", age=age, **ended, **cost)
        state = ends[number * 5 % 8]
        times = {"admitted_at": at - timedelta(minutes=30), "finished_at": at}
        make_run(box, f"run-{number}", state=state, exit_status=int(state != "completed"), **times)
