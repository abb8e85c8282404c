"""A pass that staff ask for."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from boxes.models import Box, ReconciliationEvent
from tests.fakes.provider import FakeProvider
from tests.staff.conftest import list_of


@pytest.mark.django_db(transaction=True)
def test_a_pass_is_made_now_and_what_it_did_is_told(browser: Client, provider: FakeProvider) -> None:
    provider.add_box("bx_lost", age=3600)

    page = browser.post(f"{list_of(Box)}do/reconcile/", {"confirmed": "yes"}, follow=True).content.decode()

    assert "The pass is done" in page
    assert ReconciliationEvent.objects.get().provider_box_id == "bx_lost"
    assert LogEntry.objects.get().change_message.startswith("Reconcile now: The pass is done")


@pytest.mark.django_db(transaction=True)
def test_a_pass_that_cannot_be_made_is_told(browser: Client, provider: FakeProvider) -> None:
    provider.always("list", status=401)

    page = browser.post(f"{list_of(Box)}do/reconcile/", {"confirmed": "yes"}, follow=True).content.decode()

    assert "box_unauthorized" in page
