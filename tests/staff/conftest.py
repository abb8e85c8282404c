"""Staff of each role, and a browser for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from accounts.models import User
from openagents_site.staff import roles
from tests.fakes.fixtures import fake, provider
from tests.staff.rows import fill

MANY = 12
__all__ = ["fake", "provider"]  # fixtures, which pytest finds by name


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row: Any) -> str:
    opts = type(row)._meta
    key = getattr(row, "id", row.pk)
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[key])


@pytest.fixture
def roles_made(db: None) -> None:
    """The groups as a new installation has them; a test that empties the database takes them away."""
    roles.make_groups(Group)
    roles.grant(Group, Permission.objects.select_related("content_type"))


@pytest.fixture
def browser_of(roles_made: None) -> Callable[[str], Client]:
    """`browser_of("viewer")` is that of a member of staff with that role alone; an empty role is none."""

    def make(role: str) -> Client:
        user = User.objects.create(username=f"the-{role or 'nobody'}", slug=f"the-{role}", is_staff=True)
        user.groups.set(Group.objects.filter(name=role))
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture(scope="module")
def looking(django_db_setup: None, django_db_blocker: Any) -> Iterator[Client]:
    """A superuser's browser and many rows of every table, for all tests of a module that only look."""
    with django_db_blocker.unblock(), transaction.atomic():
        fill(MANY)
        client = Client()
        client.force_login(User.objects.create_superuser(username="looks", password="staff-password"))
        client.get(reverse("admin:index"))  # what is remembered from the first time on
        yield client
        transaction.set_rollback(True)
