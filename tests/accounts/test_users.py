"""Users are known by their GitHub identity and are never deleted."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from accounts.models import ApiToken, User
from accounts.services import create_token, delete_user, upsert_github_user
from base import hooks

pytestmark = pytest.mark.django_db


def test_it_finds_the_same_user_again_and_brings_the_login_up_to_date():
    first = upsert_github_user(github_id=7, github_login="Ada")

    again = upsert_github_user(
        github_id=7, github_login="ada-l", github_avatar_url="https://example.com/a.png"
    )

    assert (again.pk, again.github_login, again.slug) == (first.pk, "ada-l", "ada")


def test_it_gives_a_second_user_of_the_same_login_another_slug():
    slugs = [upsert_github_user(github_id=n, github_login="Ada").slug for n in (1, 2, 3)]

    assert slugs == ["ada", "ada-2", "ada-3"]


@pytest.mark.parametrize("login", ["", "---", "日本", "x" * 300])
def test_it_makes_a_slug_of_any_login(login):
    assert upsert_github_user(github_id=9, github_login=login[:255]).slug


def test_deleting_keeps_the_row_and_takes_everything_personal(owner):
    token, _ = create_token(owner)

    delete_user(owner)

    owner.refresh_from_db()
    assert owner.deleted_at is not None
    assert (owner.github_id, owner.github_login, owner.email, owner.is_active) == (None, "", "", False)
    assert ApiToken.objects.get(pk=token.pk).revoked_at is not None
    assert owner.slug == "owner"


def test_deleting_tells_the_apps_once(owner, monkeypatch):
    told = []
    monkeypatch.setattr(hooks.owner_deleted, "_callables", [told.append])

    delete_user(owner)
    delete_user(owner)

    assert told == [owner]


def test_the_database_keeps_a_deleted_user_from_signing_in(owner):
    delete_user(owner)

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("update users set is_active = true where id = %s", [owner.pk])


def test_the_same_github_identity_signs_up_anew_after_deletion():
    first = upsert_github_user(github_id=7, github_login="ada")
    delete_user(first)

    second = upsert_github_user(github_id=7, github_login="ada")

    assert second.pk != first.pk
    assert second.slug == "ada-2"
    assert User.objects.count() == 2
