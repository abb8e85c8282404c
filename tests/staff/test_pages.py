"""Every list of the staff site opens, filled and empty, and can be reached."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from accounts.models import User

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


@pytest.fixture
def browser(staff: User) -> Client:
    client = Client()
    client.force_login(staff)
    return client


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_an_empty_list_opens(browser: Client, model: type[Model]) -> None:
    assert browser.get(list_of(model)).status_code == 200


def test_every_list_is_in_the_sidebar(browser: Client) -> None:
    page = browser.get(reverse("admin:index")).content.decode()

    assert [model for model in MODELS if f'href="{list_of(model)}"' not in page] == []
