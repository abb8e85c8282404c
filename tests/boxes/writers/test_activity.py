"""Since when a box is idle, and the marker of the installation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from base import hooks
from base.clock import database_now
from boxes import activity, services
from boxes.models import Box, Installation
from conversations.models import Conversation
from tests.boxes.writers.conftest import MakeBox

pytestmark = pytest.mark.django_db


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """`report({box.pk: moment}, ...)` lets each mapping be what one reporter says; returns what they were asked."""
    asked: list[Any] = []

    def install(*said: dict[Any, Any]) -> list[Any]:
        def reporter(known: dict[Any, Any]) -> Callable[[list[Any]], dict[Any, Any]]:
            return lambda ids: asked.append(ids) or known

        monkeypatch.setattr(hooks.box_activity, "_callables", [reporter(known) for known in said])
        return asked

    install()
    return install


def test_a_box_that_was_never_used_is_idle_since_its_creation(make_box: MakeBox, report: Any) -> None:
    box = make_box("bx_1")

    assert box.idle_since == box.created_at


def test_the_last_use_of_any_kind_counts(make_box: MakeBox, report: Any) -> None:
    now = database_now()
    box = make_box("bx_1", last_activity_at=now - timedelta(minutes=9))
    report({box.pk: now - timedelta(minutes=5)}, {box.pk: now - timedelta(minutes=7)}, {})

    assert box.idle_since == now - timedelta(minutes=5)


def test_something_alive_means_not_idle_however_old(make_box: MakeBox, report: Any) -> None:
    box = make_box("bx_1")
    report({box.pk: database_now()}, {box.pk: None})

    assert box.idle_since is None


def test_a_stopped_box_is_not_idle(make_box: MakeBox, report: Any) -> None:
    assert make_box("bx_1", stopped_at=database_now()).idle_since is None


def test_many_boxes_are_asked_about_at_once(
    make_box: MakeBox, conversation: Conversation, report: Any
) -> None:
    boxes = [make_box(f"bx_{number}", label=f"box-{number}") for number in range(5)]
    asked = report({})

    listed = services.list_boxes(conversation.id)

    assert [box.idle_since for box in listed] == [box.created_at for box in reversed(boxes)]
    assert [sorted(ids) for ids in asked] == [sorted(box.pk for box in boxes)]


def test_a_reporter_that_fails_does_not_hide_the_others(
    make_box: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = make_box("bx_1")

    def broken(ids: list[Any]) -> Any:
        raise ValueError("cannot say")

    monkeypatch.setattr(hooks.box_activity, "_callables", [broken, lambda ids: {box.pk: None}])

    assert activity.idle_since([box]) == {box.pk: None}


def test_the_marker_is_generated_once_and_kept(db: None) -> None:
    marker = services.provider_ownership_marker()

    assert marker == services.provider_ownership_marker() == Installation.objects.get().ownership_marker
    prefix, environment, random = marker.split("-")
    assert (prefix, environment, len(random)) == ("oab", "production", 8)


def test_a_marker_that_is_set_counts(db: None, box_api: Callable[..., None]) -> None:
    box_api(ownership_marker="our-boxes")

    assert services.provider_ownership_marker() == "our-boxes"
    assert not Installation.objects.exists()
    assert not Box.objects.exists()
