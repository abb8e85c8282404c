"""Rate limits are counted in one place for all processes."""

from __future__ import annotations

import pytest
from django.db import connection

from accounts.rates import RateLimited, count

pytestmark = pytest.mark.django_db


def test_it_refuses_the_one_too_many_and_says_when_to_come_back():
    for _ in range(10):
        count("user:1", "box_create", 10)

    with pytest.raises(RateLimited) as refused:
        count("user:1", "box_create", 10, code="box_api_rate_limited")

    assert refused.value.code == "box_api_rate_limited"
    assert 1 <= refused.value.retry_after_seconds <= 60


def test_principals_and_operations_are_counted_apart():
    count("user:1", "box_create", 1)
    count("user:1", "command", 1)
    count("user:2", "box_create", 1)


def test_a_new_window_begins_at_nothing():
    count("user:1", "box_create", 1)
    with connection.cursor() as cursor:
        cursor.execute("update rate_windows set window_start = window_start - interval '60 s'")

    count("user:1", "box_create", 1)
