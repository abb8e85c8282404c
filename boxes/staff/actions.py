"""What staff may do to boxes, leaks and plans: each calls one service."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest

from accounts.models import User
from base.admin import Action, Outcome, already, done
from boxes import fanout, leaks
from boxes.ending import forget_box
from boxes.models import Box, FanoutRequest, ReconciliationEvent
from boxes.reconciler.requested import reconcile_within
from boxes.states import EventType, ItemState
from boxes.stopping import stop_box
from conversations.models import Conversation
from conversations.services import ensure_conversation

LONGEST_WAIT_SECONDS = 25.0


def acting(request: HttpRequest) -> User:
    """Who does it; the pages let nobody else in."""
    assert isinstance(request.user, User)
    return request.user


def stop(box: Box, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    stopped = stop_box(box.conversation_id, str(box.pk))
    return done("stopped") if stopped.stopped_at else done("is being stopped")


def forget(box: Box, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    forget_box(box, by=acting(request))
    return done("its row is closed; it may go on to cost")


def stop_leak(leak: ReconciliationEvent, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    leaks.stop_leak(leaks.find_leak(leak.pk), by=acting(request))
    return done("stopped")


def dismiss_leak(leak: ReconciliationEvent, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    leaks.dismiss_leak(leaks.find_leak(leak.pk), by=acting(request))
    return done("dismissed")


def adopt_leak(leak: ReconciliationEvent, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    conversation, label = values["conversation"], values["label"] or None
    adopted = leaks.adopt_leak(leaks.find_leak(leak.pk), conversation.pk, by=acting(request), label=label)
    return done(f"adopted as {adopted.box}")


def end_plan(plan: FanoutRequest, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    waiting = plan.items.filter(state=ItemState.QUEUED).count()
    fanout.cancel(plan)
    return done(f"{waiting} no longer wait") if waiting else already("nothing of it waited")


def reconcile(nothing: None, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    result = reconcile_within(LONGEST_WAIT_SECONDS)
    if result is None:
        return done("The pass still runs, and goes on by itself.")
    if result.skipped:
        return already("Another pass is at work, and does it all.")
    counts = ", ".join(
        f"{name.replace('_', ' ')} {count}" for name, count in result.as_dict().items() if count
    )
    return done(f"The pass is done: {counts or 'there was nothing to do'}.")


class AdoptForm(forms.Form):
    """Whose box it becomes."""

    conversation = forms.CharField(
        label="Owner", help_text="A user name, or the id of a conversation.", max_length=150
    )
    label = forms.CharField(
        label="Label", required=False, max_length=128, help_text="Empty: the next box-N of the conversation."
    )

    def clean_conversation(self) -> Conversation:
        named = self.cleaned_data["conversation"].strip()
        found = _conversation(named)
        if found is None:
            raise forms.ValidationError("There is no such user, and no such conversation.")
        return found


def _conversation(named: str) -> Conversation | None:
    user = User.objects.filter(username=named, deleted_at=None).first()
    if user is not None:
        return ensure_conversation(user)
    try:
        return Conversation.objects.filter(pk=UUID(named), deleted_at=None).first()
    except ValueError:
        return None


def _is_open(leak: ReconciliationEvent) -> bool:
    return leak.event_type == EventType.LEAK and leak.handled_at is None


STOP = Action(
    name="stop",
    title="Stop",
    warning="The provider is asked to stop the box, and what runs on it ends. What was not pushed or read is lost.",
    permission="stop_box",
    perform=stop,
    icon="stop_circle",
    applies=lambda box: box.is_active,
    already=("box_stopped",),
    dangerous=True,
)
FORGET = Action(
    name="forget",
    title="Close without a stop",
    warning="Only for a box that cannot be stopped: its row is closed and the provider is not asked. The box may go on to "
    "cost, and is reported again for as long as it is there.",
    permission="forget_box",
    perform=forget,
    icon="link_off",
    applies=lambda box: box.is_active,
    already=("box_stopped",),
    dangerous=True,
)
STOP_LEAK = Action(
    name="stop",
    title="Stop",
    warning="The provider is asked to stop the box, whoever's name it carries, and the leak is closed.",
    permission="handle_reconciliationevent",
    perform=stop_leak,
    icon="stop_circle",
    applies=_is_open,
    already=("leak_handled",),
    dangerous=True,
)
ADOPT_LEAK = Action(
    name="adopt",
    title="Adopt",
    warning="The box gets a row in this conversation: from now on it counts, costs and ends as any other box there.",
    permission="handle_reconciliationevent",
    perform=adopt_leak,
    icon="add_link",
    form=AdoptForm,
    applies=_is_open,
    already=("leak_handled",),
)
DISMISS_LEAK = Action(
    name="dismiss",
    title="Dismiss",
    warning="The box is let be: it is not stopped, and it is not reported anew. It may cost.",
    permission="handle_reconciliationevent",
    perform=dismiss_leak,
    icon="visibility_off",
    applies=_is_open,
    already=("leak_handled",),
)
END_PLAN = Action(
    name="cancel",
    title="End what waits",
    warning="What of the plan still waits for a place is given up; boxes that were made stay.",
    permission="cancel_fanoutrequest",
    perform=end_plan,
    icon="cancel",
    applies=lambda plan: plan.queued_count > 0,
)
RECONCILE = Action(
    name="reconcile",
    title="Reconcile now",
    warning="A pass asks the provider for all of its boxes, closes rows whose box is gone, stops boxes whose time is up, and "
    "reports leaks. It does what the pass of each minute does, now.",
    permission="run_scheduleslot",
    perform=reconcile,
    icon="sync",
    on_list=True,
)
