"""`manage.py webhooks list|show|deliveries|replay|enable|disable`: who is told what, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from base.clock import database_now
from base.console import SHORT_ID, age, console_of, fitting, row_limit, row_named, table_of
from base.errors import CodedError
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.models import Delivery, Subscription
from openagents_site.webhooks.states import DeliveryState, DisabledReason

REFUSED = 1
MOST_ROWS = 100_000
HEADINGS = ("WEBHOOK", "OWNER", "STATE", "EVENTS", "ADDRESS")
DELIVERY_HEADINGS = ("DELIVERY", "EVENT", "AGE", "STATE", "TRIES", "LAST")


class Command(BaseCommand):
    help = (
        "Look at webhooks and their deliveries, send a delivery again, switch webhooks on and off. WEBHOOK and DELIVERY are ids or "
        "the beginnings of ids. Addresses are shown without their query, secrets never. Exit status 1: refused; 3: not there."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(
            dest="action", required=True, metavar="list|show|deliveries|replay|enable|disable"
        )
        actions.add_parser("list", help="every webhook, newest first")
        actions.add_parser("show", help="one webhook").add_argument("webhook", metavar="WEBHOOK")
        one = actions.add_parser("deliveries", help="what a webhook was told, newest first")
        one.add_argument("webhook", metavar="WEBHOOK")
        one.add_argument("--state", choices=DeliveryState.values, help="only those in this state")
        one.add_argument("--limit", type=row_limit, default=50, help="how many (default 50)")
        actions.add_parser("replay", help="send a delivery now").add_argument("delivery", metavar="DELIVERY")
        actions.add_parser("enable", help="switch a webhook on").add_argument("webhook", metavar="WEBHOOK")
        actions.add_parser("disable", help="switch a webhook off").add_argument("webhook", metavar="WEBHOOK")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            getattr(self, f"_{action}")(**options)
        except CodedError as error:
            raise CommandError(f"{error.code}: {error.detail}", returncode=REFUSED) from None

    def _list(self, **_: Any) -> None:
        rows = Subscription.objects.select_related("owner")[:MOST_ROWS]
        self._print_table(HEADINGS, [_cells(row) for row in rows], spare=("EVENTS", "OWNER"))

    def _show(self, webhook: str, **_: Any) -> None:
        found = row_named(Subscription.objects.select_related("owner"), webhook)
        for heading, cell in zip(HEADINGS, _cells(found), strict=True):
            self.stdout.write(f"{heading.lower()}: {cell}")
        self.stdout.write(f"for: {'everybody' if found.all_owners else 'its owner'}")
        self.stdout.write(f"description: {found.description}")
        self.stdout.write(f"failing since: {found.failing_since or '-'}")

    def _deliveries(self, webhook: str, state: str | None, limit: int, **_: Any) -> None:
        found = row_named(Subscription.objects.all(), webhook).deliveries.select_related("event")
        chosen = found.filter(state=state) if state else found
        now = database_now()
        rows = [
            (row.pk, row.event.event_type, age(now, row.created_at), row.state, row.attempts, row.last_status or row.last_error or "-")
            for row in chosen[: limit]
        ]  # fmt: skip
        self._print_table(DELIVERY_HEADINGS, rows, spare=("TRIES", "AGE"))

    def _print_table(
        self, headings: Sequence[str], rows: Sequence[Sequence[object]], spare: Sequence[str]
    ) -> None:
        """Ids come first and are shortened in a terminal, where the last column is cut to its width."""
        console = console_of(self.stdout)
        if console.is_terminal:
            short = [(str(row[0])[:SHORT_ID], *row[1:]) for row in rows]
            headings, rows = fitting(headings, short, console.width, spare)
        console.print(table_of(headings, rows, numbers=("TRIES",)))

    def _replay(self, delivery: str, **_: Any) -> None:
        found = row_named(Delivery.objects.select_related("subscription", "event"), delivery)
        subscriptions.replay(found)
        self.stdout.write(f"{found.pk}: due now")

    def _enable(self, webhook: str, **_: Any) -> None:
        found = row_named(Subscription.objects.all(), webhook)
        self.stdout.write(f"{found.pk}: {'on' if subscriptions.enable(found.pk) else 'was on'}")

    def _disable(self, webhook: str, **_: Any) -> None:
        found = row_named(Subscription.objects.all(), webhook)
        changed = subscriptions.disable(found.pk, DisabledReason.STAFF)
        self.stdout.write(f"{found.pk}: {'off' if changed else 'was off'}")


def _cells(row: Subscription) -> tuple[object, ...]:
    state = "on" if row.is_enabled else f"off ({row.disabled_reason})"
    return row.pk, row.owner.username, state, ", ".join(row.event_types) or "all", row.shown_url
