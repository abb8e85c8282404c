"""Bad settings are told before anything is started: each by its name, all at once, and no secret with them."""

from __future__ import annotations

import environ
import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured

from base import dead_peers
from openagents_site.database_url import connection_parameters, database_of
from openagents_site.environment_check import check

GOOD = {
    "DATABASE_URL": "postgres://app:hidden@db.example:5433/boxes",
    "SECRET_KEY": "kCIKPp4mQ9-long-enough-and-not-a-word-zXw71Ue0qVbN8rGt",
}


def problems(**variables: str) -> str:
    """What is said of these variables."""
    env = environ.Env()
    env.ENVIRON = GOOD | variables
    try:
        check(env)
    except ImproperlyConfigured as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgres://u:hidden@h:abc/x", "its port must be a number from 1 to 65535"),
        ("postgres://u:hidden@h:0/x", "its port must be a number from 1 to 65535"),
        ("postgres://u:hidden@h:99999/x", "its port must be a number from 1 to 65535"),
        ("postgres://u:hid/den@h/x", "its port must be a number from 1 to 65535"),
        ("postgres://u:hidden@h", "names no database"),
        ("postgres://u:hidden@h/", "names no database"),
        ("postgres://u:hidden@/x", "names no host"),
        ("postgres:///x", "names no host"),
        ("postgres://u:hidden@::1/x", "an IPv6 address is written in [ ]"),
        ("postgres://u:hid[den@h/x", "is no URL"),
        ("mysql://u:hidden@h/x", "must name a PostgreSQL database"),
        ("nonsense", "is no URL"),
        ("://", "is no URL"),
        ("postgres://u:hidden@h/x?connect_timeout=soon", "connect_timeout"),
        ("postgres://u:hidden@h/x?nosuch=1", "nosuch"),
    ],
)
def test_a_url_that_names_no_database_is_one_sentence_without_the_password(url: str, said: str) -> None:
    told = problems(DATABASE_URL=url)

    assert told.startswith("DATABASE_URL")
    assert said in told
    assert "hid" not in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgres://app@%2Frun%2Fpg/boxes", "/run/pg", ""),
        ("postgres://app@:5433//run/pg/boxes", "/run/pg", 5433),
        ("pgsql://app:p%40%2Fss@[::1]:5433/boxes", "::1", 5433),
        ("postgres://app:@/boxes?host=/run/pg&port=5433", "/run/pg", "5433"),
        ("postgres://app@/?host=/run/pg&dbname=boxes", "/run/pg", ""),
        ("postgres://app@one:1,two:2/boxes", "one,two", "1,2"),
        (" postgresql://app@db.example/boxes\n", "db.example", ""),
    ],
)
def test_every_form_of_a_good_url_is_read(url: str, host: str, port: str | int) -> None:
    entry = database_of(url)

    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == (host, port, "boxes")


def test_a_connection_is_given_up_after_ten_seconds_unless_the_url_says_otherwise() -> None:
    usual, own = database_of("postgres://h/x"), database_of("postgres://h/x?connect_timeout=60")

    assert connection_parameters(usual)["connect_timeout"] == dead_peers.CONNECT_SECONDS == 10
    assert connection_parameters(own)["connect_timeout"] == 60


def test_what_is_only_djangos_is_not_given_to_a_connection() -> None:
    parameters = connection_parameters(database_of("postgres://u:p%2F@h/x?pool=1&sslmode=require"))

    assert "pool" not in parameters
    assert (parameters["sslmode"], parameters["password"]) == ("require", "p/")
    psycopg.conninfo.make_conninfo("", **parameters)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SECRET_KEY", ""),
        ("SECRET_KEY", "short"),
        ("SECRET_KEY", "k" * 31),
        ("SECRET_KEY", "abcd" * 20),
        ("PUBLIC_BASE_URL", "boxes.example"),
        ("PUBLIC_BASE_URL", "http://boxes.example:abc"),
        ("BOX_API_BASE_URL", "ftp://provider.example"),
        ("BOX_API_BASE_URL", "http://provider.example:99999/api"),
        ("GITHUB_URL", "github.example"),
        ("WORK_MODEL_BASE_URL", "http://"),
        ("BOX_TTL_SECONDS", "0"),
        ("WEB_THREADS", "many"),
        ("WEB_PROCESSES", "0"),
    ],
)
def test_any_other_bad_setting_is_named(variable: str, value: str) -> None:
    told = problems(**{variable: value})

    assert told.startswith(variable)
    assert "\n" not in told


def test_a_bad_key_is_told_with_the_command_that_makes_a_good_one() -> None:
    told = problems(SECRET_KEY="hunter2")

    assert "secrets.token_urlsafe(48)" in told
    assert "hunter2" not in told


def test_all_that_is_bad_is_told_at_once() -> None:
    told = problems(DATABASE_URL="mysql://h/x", SECRET_KEY="short", BOX_TTL_SECONDS="0", LOG_LEVEL="LOUD")

    assert [part.split()[0] for part in told.split("; ") if part[0].isupper()] == [
        "DATABASE_URL", "SECRET_KEY", "LOG_LEVEL", "BOX_TTL_SECONDS"
    ]  # fmt: skip


def test_good_settings_and_none_at_all_are_good() -> None:
    assert problems() == ""
    assert problems(DATABASE_URL="", SECRET_KEY="") == ""
