"""What operators have: the command, pruning, figures, the doctor."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import User
from base.pump import Holder
from openagents_site.doctor import Level, webhooks
from openagents_site.metrics import page
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.deliveries import claim_due
from openagents_site.webhooks.fan_out import fan_out
from openagents_site.webhooks.models import Attempt, Event, Subscription
from openagents_site.webhooks.retention import RULES
from tests.webhooks.conftest import BoxOf, deliver, only_delivery, secret_of
from tests.webhooks.receiver import Receiver, Reply

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("webhooks", *arguments, stdout=out)
    return out.getvalue()


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def grow_old(days: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "update webhook_deliveries set ended_at = ended_at - make_interval(days => %s)", [days]
        )
        cursor.execute(
            "update webhook_events set fanned_out_at = fanned_out_at - make_interval(days => %s)", [days]
        )


def test_the_command_lists_and_shows_without_secrets(owner: User, receiver: Receiver) -> None:
    hook, secret = subscriptions.create(owner, url=f"{receiver.url}?token=hidden", event_types=["run.*"])

    for text in (said("list"), said("show", str(hook.pk)[:8])):
        assert str(hook.pk) in text
        assert "run.*" in text
        assert "hidden" not in text
        assert secret not in text


def test_lists_fit_into_a_narrow_terminal_and_name_rows_well_enough(
    hook: Subscription, owner: User, box_of: BoxOf, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    box_of(owner)
    deliver()

    for line, row in (
        (in_a_terminal("list"), hook),
        (in_a_terminal("deliveries", str(hook.pk)[:8]), only_delivery()),
    ):
        assert len(line) <= 60
        assert row.__class__.objects.get(pk__startswith=line.split()[0]) == row


def in_a_terminal(*arguments: str) -> str:
    """The one row of a list, in one line."""
    terminal = Terminal()
    call_command("webhooks", *arguments, stdout=terminal)
    _headings, row = terminal.getvalue().splitlines()
    return row


def test_a_state_that_is_none_is_refused(hook: Subscription) -> None:
    with pytest.raises(CommandError, match="invalid choice: 'sent'"):
        said("deliveries", str(hook.pk), "--state", "sent")


def test_the_command_switches_and_replays(
    hook: Subscription, owner: User, box_of: BoxOf, receiver: Receiver
) -> None:
    box_of(owner)
    deliver()
    name = str(hook.pk)

    assert "delivered" in said("deliveries", name)
    assert "delivered" not in said("deliveries", name, "--state", "pending")
    assert "due now" in said("replay", str(only_delivery().pk))
    assert said("disable", name).endswith(": off\n")
    assert said("disable", name).endswith(": was off\n")
    with pytest.raises(CommandError, match="webhook_disabled"):
        said("replay", str(only_delivery().pk))
    assert said("enable", name).endswith(": on\n")
    hook.refresh_from_db()
    assert hook.is_enabled


def test_the_command_says_what_is_not_there() -> None:
    with pytest.raises(CommandError) as refused:
        said("show", "deadbeef")
    assert refused.value.returncode == 3


def test_what_was_told_is_forgotten_and_what_is_to_be_told_is_not(
    hook: Subscription, owner: User, box_of: BoxOf, receiver: Receiver
) -> None:
    box_of(owner)
    deliver()
    receiver.answers(Reply(500))
    box_of(owner)
    deliver()
    grow_old(31)

    assert [rule.forget() for rule in RULES] == [1, 1, 1]
    assert only_delivery().state == "pending"
    assert (Event.objects.count(), Attempt.objects.count()) == (1, 1)


def test_what_was_told_is_kept_for_its_days(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    box_of(owner)
    deliver()
    grow_old(29)

    assert [rule.forget() for rule in RULES] == [0, 0, 0]


def test_the_doctor_sees_deliveries_that_nobody_takes_up(
    hook: Subscription, owner: User, box_of: BoxOf
) -> None:
    box_of(owner)
    fan_out()
    assert webhooks.deliveries()[0].level == Level.GOOD
    with connection.cursor() as cursor:
        cursor.execute(
            "update webhook_deliveries set next_attempt_at = clock_timestamp() - interval '10 minutes'"
        )

    (found,) = webhooks.deliveries()
    assert (found.level, "1 delivery is due" in found.seen) == (Level.BAD, True)


def test_the_doctor_does_not_mind_a_slow_receiver(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    for _ in range(2):
        box_of(owner)
    fan_out()
    claim_due(Holder(), 1)
    with connection.cursor() as cursor:
        cursor.execute(
            "update webhook_deliveries set next_attempt_at = clock_timestamp() - interval '10 minutes'"
        )

    assert webhooks.deliveries()[0].level == Level.GOOD


def test_the_doctor_warns_of_receivers_that_take_nothing(hook: Subscription) -> None:
    Subscription.objects.update(failing_since="2020-01-01T00:00:00Z")

    assert webhooks.deliveries()[0].level == Level.WARNING


def test_the_doctor_sees_events_that_nobody_takes_up(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    box_of(owner)
    Event.objects.update(occurred_at="2020-01-01T00:00:00Z")

    (found,) = webhooks.deliveries()
    assert (found.level, "1 event waits" in found.seen) == (Level.BAD, True)


def test_the_figures_tell_what_waits(
    hook: Subscription, owner: User, box_of: BoxOf, client, staff: User
) -> None:
    box_of(owner)
    fan_out()
    client.force_login(staff)

    shown = client.get("/metrics").content.decode()

    assert page is not None
    assert 'openagents_queue_due{queue="webhooks"} 1.0' in shown
    assert 'openagents_queue_due{queue="webhook_events"} 0.0' in shown
    assert secret_of(hook) not in shown
