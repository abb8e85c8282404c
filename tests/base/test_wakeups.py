"""Waiters are woken by a notification, hold no connection, and share one listening connection."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from base import notify, wakeups
from tests.waiting import eventually


@pytest.fixture
def told(transactional_db):
    """Runs in another thread once the waiter is asleep, as another process would."""

    def tell(action):
        def run() -> None:
            try:
                action()
            finally:
                connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    return tell


def listening_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%%'"
        )
        return int(cursor.fetchone()[0])


def test_a_notification_ends_the_wait_long_before_the_time_is_up(told, monkeypatch):
    monkeypatch.setattr(wakeups, "LONGEST_NAP_SECONDS", 600.0)
    news: list[int] = []

    def tell() -> None:
        news.append(1)
        notify.notify(notify.CHANGED, "box:1")

    asked = []

    def met() -> bool:
        asked.append(len(news))
        if not asked[1:]:
            told(tell)
        return bool(news)

    assert wakeups.wait_until("box:1", met, seconds=600)


def test_it_gives_up_when_the_time_is_up(transactional_db):
    assert not wakeups.wait_until("box:1", lambda: False, seconds=0.05)


def test_it_holds_no_database_connection_while_it_waits(told):
    seen = []
    told(lambda: None)

    def met() -> bool:
        seen.append(connection.connection)
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        return len(seen) > 2

    wakeups.of_this_process._ensure_listening()
    threading.Timer(0.1, wakeups.of_this_process.wake_all).start()
    threading.Timer(0.2, wakeups.of_this_process.wake_all).start()
    assert wakeups.wait_until("box:1", met, seconds=30)
    assert seen[1:] == [None, None]


def test_a_hundred_waiters_share_one_listening_connection(transactional_db):
    told, woken = threading.Event(), []

    def wait() -> None:
        with wakeups.of_this_process.waiting_for("many") as event:
            while is_woken := event.wait(60):  # the start of the listening wakes everybody too
                event.clear()
                if told.is_set():
                    break
            woken.append(is_woken)

    threads = [threading.Thread(target=wait) for _ in range(100)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(wakeups.of_this_process._waiters.get("many", ())) == 100)

    eventually(lambda: listening_connections() == 1)  # that of an earlier test may be there a moment longer
    told.set()
    notify.notify(notify.CHANGED, "many")
    for thread in threads:
        thread.join()
    assert woken == [True] * 100


def test_it_listens_again_after_its_connection_was_cut(transactional_db, monkeypatch):
    monkeypatch.setattr(wakeups, "RECONNECT_SECONDS", 0.01)
    with wakeups.of_this_process.waiting_for("cut") as event:
        eventually(listening_connections)
        event.clear()
        with connection.cursor() as cursor:
            cursor.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and query ilike 'listen%%'"
            )
        assert event.wait(30)  # it listens anew and wakes everybody, since it may have missed something


def test_who_waits_is_let_go_when_the_process_is_asked_to_end(transactional_db, monkeypatch):
    mine = wakeups.Wakeups()
    monkeypatch.setattr(wakeups, "of_this_process", mine)
    monkeypatch.setattr(wakeups, "LONGEST_NAP_SECONDS", 600.0)
    asked = []

    def met() -> bool:
        asked.append(1)
        if not asked[1:]:
            threading.Thread(target=mine.dismiss).start()
        return False

    assert not wakeups.wait_until("box:1", met, seconds=600)
    assert not wakeups.wait_until("box:2", lambda: False, seconds=600)
    mine.stop()
