"""What each role may do on the staff site and by the API, and how roles come to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from accounts.models import ApiToken, User
from accounts.services import delete_user, upsert_github_user
from base.admin import Action
from boxes.models import Box, ReconciliationEvent
from openagents_site.staff import roles
from runs.models import Run
from tests.staff.conftest import list_of
from tests.staff.rows import Rows

pytestmark = pytest.mark.django_db

ROLES = ("", roles.VIEWER, roles.OPERATOR, roles.ADMIN)
ACTIONS = [
    (model, action)
    for model, page in admin.site._registry.items()
    for action in getattr(page, "staff_actions", ())
]
MAY = {
    roles.VIEWER: frozenset[str](),
    roles.OPERATOR: roles.OPERATES,
    roles.ADMIN: roles.OPERATES | roles.ADMINISTERS,
    "": frozenset[str](),
}


@pytest.fixture(scope="module")
def browsers(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, Client]]:
    """One of each role, and a row of every table that nothing is done to."""
    with django_db_blocker.unblock(), transaction.atomic():
        roles.make_groups(Group)
        roles.grant(Group, Permission.objects.select_related("content_type"))
        Rows(0).make()
        yield {role: signed_in(role) for role in ROLES}
        transaction.set_rollback(True)


def signed_in(role: str) -> Client:
    user = User.objects.create(username=f"the-{role or 'nobody'}", slug=f"the-{role}", is_staff=True)
    user.groups.set(Group.objects.filter(name=role))
    client = Client()
    client.force_login(user)
    return client


def name_of(case: Any) -> str:
    if isinstance(case, Action):
        return case.name
    return case._meta.model_name if isinstance(case, type) else str(case or "no role")


@pytest.mark.parametrize("role", ROLES, ids=name_of)
@pytest.mark.parametrize(("model", "action"), ACTIONS, ids=name_of)
def test_an_action_is_for_those_whose_role_has_it(
    browsers: dict[str, Client], role: str, model: Any, action: Action
) -> None:
    allowed = f"{model._meta.app_label}.{action.permission}" in MAY[role]
    page = f"{list_of(model)}do/{action.name}/" if action.on_list else address(model, action)
    browser, logged = browsers[role], LogEntry.objects.count()

    assert browser.get(page).status_code == (200 if allowed else 403)
    if not allowed:
        assert browser.post(page, {"confirmed": "yes"}).status_code == 403
        assert LogEntry.objects.count() == logged


def address(model: Any, action: Action) -> str:
    row = model.objects.first()
    opts = model._meta
    key = getattr(row, "id", row.pk)
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_action", args=[key, action.name])


@pytest.mark.parametrize("role", ROLES, ids=name_of)
def test_each_role_sees_every_list_and_nobody_else_does(browsers: dict[str, Client], role: str) -> None:
    seen = {browsers[role].get(list_of(model)).status_code for model in (Box, Run, ApiToken, User, Group)}

    assert seen == ({200} if role else {403})


@pytest.mark.parametrize("role", ROLES, ids=name_of)
def test_a_list_and_a_page_offer_what_the_role_may_do(browsers: dict[str, Client], role: str) -> None:
    if not role:
        assert browsers[role].get(list_of(Box)).status_code == 403
        return
    box = Box.objects.get()
    page = browsers[role].get(reverse("admin:boxes_box_change", args=[box.pk])).content.decode()
    rows = browsers[role].get(list_of(Box))

    assert ("/do/stop/" in page) == (role != roles.VIEWER)
    assert ("/do/forget/" in page) == (role == roles.ADMIN)
    assert ("stop" in str(rows.context["action_form"])) == (role != roles.VIEWER)
    assert ("/do/reconcile/" in rows.content.decode()) == (role != roles.VIEWER)


@pytest.mark.parametrize(
    ("role", "allowed"), [(roles.VIEWER, False), (roles.OPERATOR, False), (roles.ADMIN, True)]
)
def test_users_roles_and_tokens_are_for_administrators(
    browsers: dict[str, Client], role: str, allowed: bool
) -> None:
    pages = ["admin:accounts_user_add", "admin:auth_group_add", "admin:accounts_apitoken_add"]

    assert {browsers[role].get(reverse(page)).status_code for page in pages} == {200 if allowed else 403}


def test_nobody_makes_themselves_more_than_they_are(browsers: dict[str, Client]) -> None:
    browser, mighty = browsers[roles.ADMIN], User.objects.create_superuser(username="root", password="x")
    own = User.objects.get(username="the-admin")
    page = reverse("admin:accounts_user_change", args=[own.pk])
    form = browser.get(page).context["adminform"].form

    assert {"is_superuser", "user_permissions"} & set(form.fields) == set()
    browser.post(page, {"username": "the-admin", "is_staff": "on", "is_active": "on", "is_superuser": "on"})
    assert not User.objects.get(pk=own.pk).is_superuser
    assert browser.post(reverse("admin:accounts_user_change", args=[mighty.pk]), {}).status_code == 403
    assert browser.get(reverse("admin:auth_user_password_change", args=[mighty.pk])).status_code == 403


def test_nobody_lets_in_again_who_was_deleted(browsers: dict[str, Client], stranger: User) -> None:
    delete_user(stranger)
    page = reverse("admin:accounts_user_change", args=[stranger.pk])

    assert browsers[roles.ADMIN].get(page).status_code == 200
    answer = browsers[roles.ADMIN].post(page, {"username": "back", "is_active": "on"})

    assert answer.status_code == 403
    assert (
        browsers[roles.ADMIN].get(reverse("admin:auth_user_password_change", args=[stranger.pk])).status_code
        == 403
    )


@pytest.mark.parametrize(
    ("name", "slug"), [("Octocat", "octocat-2"), ("octo@cat.example", "octocatexample"), ("@", "user")]
)
def test_a_user_is_added_whose_namespace_is_taken_or_no_namespace(
    browsers: dict[str, Client], name: str, slug: str
) -> None:
    upsert_github_user(github_id=583231, github_login="octocat")
    values = {
        "username": name,
        "password1": "a-long-one-37",
        "password2": "a-long-one-37",
        "usable_password": "true",
    }

    answer = browsers[roles.ADMIN].post(reverse("admin:accounts_user_add"), values)

    assert answer.status_code == 302
    assert User.objects.get(username=name).slug == slug


def test_no_token_is_made_for_a_superuser_but_by_one(browsers: dict[str, Client]) -> None:
    User.objects.create_superuser(username="root", password="x")
    wanted = {"username": "root", "scopes": ["read"]}

    answer = browsers[roles.ADMIN].post(reverse("admin:accounts_apitoken_add"), wanted)

    assert "Only a superuser" in answer.content.decode()
    assert not ApiToken.objects.filter(user__username="root").exists()


def test_a_viewer_is_shown_nothing_of_a_password(browsers: dict[str, Client]) -> None:
    user = User.objects.create_user(username="someone", password="their-password")

    page = browsers[roles.VIEWER].get(reverse("admin:accounts_user_change", args=[user.pk]))

    assert page.status_code == 200
    for part in (user.password, user.password.split("$")[0] + "$", "assword"):
        assert part not in page.content.decode().split("</nav>")[-1]


def test_by_the_api_a_viewer_changes_nothing_of_others(browsers: dict[str, Client], api_of: Any) -> None:
    box, leak = Box.objects.get(), ReconciliationEvent.objects.get()
    viewer: APIClient = api_of(User.objects.get(username="the-viewer"))

    for path in (
        f"boxes/{box.pk}/stop?all=true",
        f"leaks/{leak.pk}/dismiss",
        "reconcile",
        f"boxes/{box.pk}/forget",
    ):
        answer = viewer.post(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert viewer.get("/api/v1/boxes?all=true").json()["results"] != []
    assert Box.objects.get().is_active


def test_by_the_api_an_operator_handles_leaks_and_forgets_no_box(
    browsers: dict[str, Client], api_of: Callable[..., APIClient]
) -> None:
    box, leak = Box.objects.get(), ReconciliationEvent.objects.get()
    operator = api_of(User.objects.get(username="the-operator"))

    assert operator.post(f"/api/v1/leaks/{leak.pk}/dismiss").status_code == 200
    assert operator.post(f"/api/v1/boxes/{box.pk}/forget").status_code == 403


# how they come to be


def test_a_new_installation_has_the_roles_with_what_they_begin_with(roles_made: None) -> None:
    operator, may = Group.objects.get(name="operator"), Permission.objects.all()

    assert set(operator.permissions.all()) == {each for each in may if roles.has("operator", named(each))}
    assert operator.permissions.filter(codename="stop_box").exists()


def named(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def test_what_staff_changed_of_a_role_stays(roles_made: None) -> None:
    operator = Group.objects.get(name="operator")
    operator.permissions.remove(Permission.objects.get(codename="stop_box"))
    Group.objects.filter(name="viewer").delete()
    migration = roles.NewPermissions()

    migration.before()
    migration.after()

    assert not operator.permissions.filter(codename="stop_box").exists()
    assert not Group.objects.filter(name="viewer").exists()


def test_a_permission_that_comes_later_is_given_once(roles_made: None) -> None:
    stop = Permission.objects.get(codename="stop_box")
    migration, kept = roles.NewPermissions(), {"content_type": stop.content_type, "codename": stop.codename}
    stop.delete()

    migration.before()
    Permission.objects.create(name="Can stop box", **kept)
    migration.after()

    holders = Group.objects.filter(permissions__codename="stop_box").values_list("name", flat=True)
    assert set(holders) == {"operator", "admin"}


def test_a_run_of_migrate_gives_the_roles_what_it_brought(roles_made: None) -> None:
    Permission.objects.filter(codename="stop_box").delete()

    call_command("migrate", verbosity=0)

    holders = Group.objects.filter(permissions__codename="stop_box").values_list("name", flat=True)
    assert set(holders) == {"operator", "admin"}


def test_every_permission_that_a_role_begins_with_is_there() -> None:
    known = {named(permission) for permission in Permission.objects.select_related("content_type")}

    assert (roles.OPERATES | roles.ADMINISTERS) - known == set()
