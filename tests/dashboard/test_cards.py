"""What the cards say of figures that could not be had: that they are not known, and never that all is well."""

from __future__ import annotations

from datetime import UTC, datetime

from boxes.conf import box_api
from openagents_site.dashboard.cards import Card, cards
from tests.dashboard.test_health import now

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
WITHOUT_AN_ANSWER = dict.fromkeys(
    ("boxes", "runs", "spent_today_microusd", "spent_month_microusd", "leaks", "incidents", "ended_last_day")
)


def said_of(**figures: object) -> dict[str, Card]:
    return {card.title: card for card in cards(now(**figures), box_api(), AT)}


def test_nothing_is_claimed_of_what_is_not_known() -> None:
    shown = said_of(**WITHOUT_AN_ANSWER)

    assert {card.value for card in shown.values()} == {"not known"}
    for title in ("Runs now", "Open leaks", "Open incidents"):
        assert (title, shown[title].said) == (title, "the database did not answer")
    assert "an hour" not in shown["Active boxes"].said


def test_that_there_is_nothing_is_said_where_it_is_known() -> None:
    shown = said_of()

    assert shown["Open leaks"].said == "every box at the provider is claimed"
    assert shown["Open incidents"].said == "nothing is to be looked after"
    assert shown["Runs now"].said == "nothing runs"
