"""The writers of webhooks: made, changed, switched on and off, given another secret, tried out, told again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet

from accounts.models import User
from accounts.permissions import StaffOnly
from base import leases, notify
from base.clock import database_now
from openagents_site.webhooks import signing, targets
from openagents_site.webhooks.conf import webhook_settings
from openagents_site.webhooks.errors import TooManyWebhooks, WebhookDisabled
from openagents_site.webhooks.models import Delivery, Event, Subscription
from openagents_site.webhooks.rendering import payload_of
from openagents_site.webhooks.states import TEST, DeliveryState, DisabledReason
from work import incidents

log = structlog.get_logger(__name__)
DELIVERIES_DRIVER = "webhooks"
CANCEL = "state = 'cancelled', next_attempt_at = null, ended_at = clock_timestamp()"


def create(
    owner: User,
    *,
    url: str,
    event_types: Sequence[str] = (),
    description: str = "",
    all_owners: bool = False,
    ticket: UUID | None = None,
) -> tuple[Subscription, str]:
    """A new webhook and its secret, which is shown now and never again.

    `ticket` becomes its id: the same ticket gives the same webhook and secret. Raises InvalidTarget, TooManyWebhooks, or
    StaffOnly for `all_owners` of somebody who is not staff.
    """
    targets.checked_url(url)
    if all_owners and not owner.is_staff:
        raise StaffOnly
    pk = ticket or uuid4()
    with transaction.atomic():
        list(
            User.objects.select_for_update().filter(pk=owner.pk).values("pk")
        )  # one at a time: the limit is exact
        known = Subscription.objects.filter(pk=pk, owner=owner).first()
        if known is not None:
            return known, signing.opened(known.pk, bytes(known.sealed_secret))
        if Subscription.objects.filter(owner=owner).count() >= webhook_settings().maximum_per_owner:
            raise TooManyWebhooks
        secret = signing.new_secret()
        made = Subscription.objects.create(
            pk=pk,
            owner=owner,
            url=url,
            description=description,
            event_types=list(dict.fromkeys(event_types)),
            all_owners=all_owners,
            sealed_secret=signing.sealed(pk, secret),
        )
    made.refresh_from_db()
    return made, secret


def change(subscription: Subscription, **values: Any) -> Subscription:
    """Give it another `url`, `description` or `event_types`, or switch it with `enabled`. Raises InvalidTarget."""
    enabled = values.pop("enabled", None)
    if "url" in values:
        targets.checked_url(values["url"])
    if "event_types" in values:
        values["event_types"] = list(dict.fromkeys(values["event_types"]))
    with transaction.atomic():
        if values:
            Subscription.objects.filter(pk=subscription.pk).update(**values)
        if enabled is not None:
            enable(subscription.pk) if enabled else disable(subscription.pk, DisabledReason.OWNER)
    subscription.refresh_from_db()
    return subscription


def rotate(subscription: Subscription) -> str:
    """Another secret, shown now and never again. For 24 hours deliveries carry a signature of the one before as well."""
    secret = signing.new_secret()
    with transaction.atomic():
        held = Subscription.objects.select_for_update().get(pk=subscription.pk)
        held.sealed_previous_secret = held.sealed_secret
        held.previous_until = database_now() + timedelta(hours=signing.OVERLAP_HOURS)
        held.sealed_secret = signing.sealed(held.pk, secret)
        held.save(update_fields=["sealed_secret", "sealed_previous_secret", "previous_until"])
    subscription.refresh_from_db()
    return secret


def enable(webhook: UUID) -> bool:
    """Switch it on, with nothing held against it. False: it was on."""
    rows = Subscription.objects.filter(pk=webhook, disabled_at__isnull=False)
    return rows.update(disabled_at=None, disabled_reason=None, failing_since=None) == 1


def disable(webhook: UUID, reason: DisabledReason) -> bool:
    """Switch it off; what was still to be told is cancelled, and can be replayed. False: it was off."""
    with transaction.atomic():
        now = database_now()
        if not Subscription.objects.filter(pk=webhook, disabled_at=None).update(
            disabled_at=now, disabled_reason=reason
        ):
            return False
        with connection.cursor() as cursor:  # what is in flight is settled by whoever holds it
            cursor.execute(
                f"update webhook_deliveries d set {CANCEL} where d.subscription_id = %s"  # noqa: S608
                f" and d.next_attempt_at is not null and {leases.free('d')}",
                [webhook],
            )
    log.info("webhook_disabled", webhook=str(webhook), reason=str(reason))
    return True


def note_success(webhook: UUID) -> None:
    """It took something: nothing is held against it any more."""
    Subscription.objects.filter(pk=webhook, failing_since__isnull=False).update(failing_since=None)


def note_failure(webhook: UUID) -> None:
    """It did not take something. If it has taken nothing for days it is switched off, and its owner told."""
    now = database_now()
    if Subscription.objects.filter(pk=webhook, failing_since=None).update(failing_since=now):
        return
    days = webhook_settings().disable_after_days
    failing = Subscription.objects.filter(pk=webhook, failing_since__lt=now - timedelta(days=days)).first()
    if failing is not None and disable(webhook, DisabledReason.FAILING):
        _report(failing, days)


def send_test(subscription: Subscription) -> Delivery:
    """Send it `webhook.test` now. Raises WebhookDisabled."""
    now = database_now()
    event = Event(
        event_type=TEST,
        object_id=subscription.pk,
        row={"id": str(subscription.pk), "message": "This webhook works."},
        occurred_at=now,
        only_for=subscription,
        fanned_out_at=now,
    )
    event.payload = payload_of(event)
    with transaction.atomic():
        _locked_and_enabled(subscription)
        event.save(force_insert=True)
        made = Delivery.objects.create(event=event, subscription=subscription)
        notify.notify(notify.DUE, DELIVERIES_DRIVER)
    made.refresh_from_db()
    return made


def replay(delivery: Delivery) -> Delivery:
    """Send it now, once more or sooner, under the same id, with all its tries before it. Raises WebhookDisabled."""
    with transaction.atomic():
        _locked_and_enabled(delivery.subscription)
        with connection.cursor() as cursor:
            cursor.execute(
                "update webhook_deliveries set state = %s, failures = 0, replays = replays + 1, ended_at = null,"
                " next_attempt_at = clock_timestamp() where id = %s",
                [DeliveryState.PENDING, delivery.pk],
            )
        notify.notify(notify.DUE, DELIVERIES_DRIVER)
    delivery.refresh_from_db()
    return delivery


def delete(webhooks: QuerySet[Subscription]) -> None:
    """They go, with all that they were told and its log. What is under way is not written down any more.

    Whoever writes down a try holds the delivery and then asks for the webhook; so that is the order here, too.
    """
    with transaction.atomic():
        chosen = list(webhooks.values_list("pk", flat=True))
        with connection.cursor() as cursor:
            for table, column in (("webhook_deliveries", "subscription_id"), ("webhook_subscriptions", "id")):
                cursor.execute(
                    f"select count(*) from (select from {table} where {column} = any(%s) for update) held",  # noqa: S608
                    [chosen],
                )
        Subscription.objects.filter(pk__in=chosen).delete()


def forget_owner(owner: Any) -> None:
    """A deleted user's webhooks go, and with them their addresses."""
    if isinstance(owner, User):
        delete(Subscription.objects.filter(owner=owner))


def _locked_and_enabled(subscription: Subscription) -> None:
    held = Subscription.objects.select_for_update().filter(pk=subscription.pk, disabled_at=None)
    if not held.exists():
        raise WebhookDisabled


def _report(subscription: Subscription, days: int) -> None:
    incidents.report(
        {
            "origin": "webhooks",
            "code": "webhook_disabled",
            "owner_user": subscription.owner_id,
            "correlation_ref": str(subscription.pk),
            "summary": f"A webhook has taken nothing for {days} days and was switched off. Mend its receiver, then switch it on.",
            "context": {"webhook": str(subscription.pk), "description": subscription.description},
        }
    )
