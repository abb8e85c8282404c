"""A lease is held by one, ends with its holder's life, and fences out whoever slept through it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from django.db import connection, transaction

from base import leases, locks, notify
from base.pump import Holder
from boxes import slots


@pytest.fixture
def slot(transactional_db):
    return slots.ensure("tests", interval_ms=60_000, initial_delay_ms=0)


@pytest.fixture
def worker(transactional_db):
    """A worker with a sign of life: its connection and its number."""
    link = notify.own_connection()
    yield link, leases.new_worker(link)
    link.close()


def test_one_of_two_gets_it(slot, worker):
    holder = Holder(worker[1])

    assert slots.claim("tests", holder) is not None
    assert slots.claim("tests", Holder()) is None


def test_it_is_free_the_moment_its_holder_dies(slot):
    program = (
        "import django; django.setup()\n"
        "from base import leases, notify\nfrom base.pump import Holder\nfrom boxes import slots\n"
        "link = notify.own_connection()\n"
        "assert slots.claim('tests', Holder(leases.new_worker(link)))\n"
        "print('held', flush=True)\nimport time; time.sleep(600)"
    )
    url = f"postgres://app@/{connection.settings_dict['NAME']}?host={connection.settings_dict['HOST']}"
    environment = os.environ | {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "openagents_site.settings"}
    holder = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert slots.claim("tests", Holder()) is None

    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    while leases.live_workers():  # PostgreSQL notices the closed socket
        pass

    assert slots.claim("tests", Holder()) is not None


def test_a_holder_without_a_sign_of_life_keeps_it_until_it_ends(slot):
    assert slots.claim("tests", Holder()) is not None
    assert slots.claim("tests", Holder()) is None
    with connection.cursor() as cursor:
        cursor.execute("update schedule_slots set lease_expires_at = clock_timestamp() - interval '1 ms'")

    assert slots.claim("tests", Holder()) is not None


def test_who_slept_through_the_lease_writes_nothing(slot):
    asleep = slots.claim("tests", Holder())
    with connection.cursor() as cursor:
        cursor.execute("update schedule_slots set lease_expires_at = clock_timestamp() - interval '1 ms'")
    awake = slots.claim("tests", Holder())
    assert asleep is not None
    assert awake is not None

    assert not slots.finish(asleep, {"late": True}, failed=False)
    assert slots.finish(awake, {"good": True}, failed=False)


def test_numbers_of_workers_are_not_given_twice(worker):
    other = notify.own_connection()
    try:
        assert leases.new_worker(other) != worker[1]
        assert worker[1] in leases.live_workers()
    finally:
        other.close()


@pytest.mark.django_db
def test_a_transaction_lock_needs_a_transaction(transactional_db):
    with pytest.raises(AssertionError):
        locks.hold_for_transaction("a")
    with transaction.atomic():
        locks.hold_for_transaction("a", "b")


def test_a_session_lock_is_had_by_one(transactional_db):
    first, second = notify.own_connection(), notify.own_connection()
    try:
        with locks.held_by_session(first, "pass") as had, locks.held_by_session(second, "pass") as had_too:
            assert (had, had_too) == (True, False)
        with locks.held_by_session(second, "pass") as had_after:
            assert had_after
    finally:
        first.close()
        second.close()
