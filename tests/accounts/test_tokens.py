"""A bearer token is stored as a digest, opens what its scopes say, and fails in one way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.authentication import BearerTokenAuthentication, InvalidApiToken
from accounts.models import ApiToken
from accounts.services import InvalidToken, create_token, revoke_token

pytestmark = pytest.mark.django_db


def find(plaintext: str) -> ApiToken:
    return BearerTokenAuthentication().find(plaintext.encode())


def test_it_is_found_by_its_plaintext_which_is_stored_nowhere(owner):
    token, plaintext = create_token(owner, name="laptop")

    assert find(plaintext) == token
    assert plaintext.startswith("oa_pat_")
    assert plaintext not in str(list(ApiToken.objects.values()))


def test_it_reads_only_when_no_scope_is_asked_for(owner):
    assert create_token(owner)[0].scopes == ["read"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": ["root"]},
        {"name": "x" * 81},
        {"expires_in": timedelta(0)},
        {"expires_in": timedelta(days=-1)},
    ],
)
def test_it_refuses_what_makes_no_sense(owner, wrong):
    with pytest.raises(InvalidToken):
        create_token(owner, **wrong)


@pytest.mark.parametrize("presented", ["", "oa_pat_", "oa_pat_" + "0" * 64, "x" * 10_000, "🙂", "oa_pat_\0"])
def test_it_answers_every_wrong_token_alike(owner, presented):
    create_token(owner)

    with pytest.raises(InvalidApiToken):
        find(presented)


def test_an_expired_token_is_refused_and_kept(owner):
    token, plaintext = create_token(owner, expires_in=timedelta(hours=1))
    ApiToken.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(seconds=1))

    with pytest.raises(InvalidApiToken):
        find(plaintext)
    assert ApiToken.objects.filter(pk=token.pk).exists()


def test_a_revoked_token_is_refused_at_once(owner):
    token, plaintext = create_token(owner)

    assert revoke_token(token)
    assert not revoke_token(token)
    with pytest.raises(InvalidApiToken):
        find(plaintext)


def test_a_token_of_an_inactive_user_is_refused(owner):
    _, plaintext = create_token(owner)
    owner.is_active = False
    owner.save()

    with pytest.raises(InvalidApiToken):
        find(plaintext)


def test_its_use_is_noted_at_most_once_a_minute(owner, django_assert_num_queries):
    _, plaintext = create_token(owner)
    find(plaintext)

    with django_assert_num_queries(1):  # the look-up, which asks for the time as well
        assert find(plaintext).last_used_at is not None
