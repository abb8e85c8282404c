"""Settings are typed, and a bad one is named."""

from __future__ import annotations

import os
from dataclasses import dataclass

import environ
import pytest
from django.core.exceptions import ImproperlyConfigured

from base.conf import declarations, from_environment, resolve, setting


@dataclass(frozen=True)
class Kettle:
    litres: int = setting(2, "KETTLE_LITRES", "How much it holds.", minimum=1, maximum=5)
    colour: str = setting("red", "KETTLE_COLOUR", "What it looks like.", choices=("red", "blue"))
    whistles: bool = setting(True, "KETTLE_WHISTLES", "Whether it whistles.")
    owners: tuple[str, ...] = setting((), "KETTLE_OWNERS", "Who may use it.")


@pytest.fixture
def read(monkeypatch):
    def read(**variables: str) -> dict[str, object]:
        for name, value in variables.items():
            monkeypatch.setitem(os.environ, name, value)
        return from_environment(Kettle, environ.Env())

    return read


def test_it_reads_what_the_environment_sets_and_nothing_else(read):
    assert read(KETTLE_LITRES="3", KETTLE_WHISTLES="off", KETTLE_OWNERS="ann, bob,") == {
        "litres": 3,
        "whistles": False,
        "owners": ("ann", "bob"),
    }


def test_an_empty_variable_is_no_variable(read):
    assert read(KETTLE_LITRES="  ") == {}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("KETTLE_LITRES", "two", "must be a whole number, not 'two'"),
        ("KETTLE_LITRES", "0", "must be at least 1, not 0"),
        ("KETTLE_LITRES", "6", "must be at most 5, not 6"),
        ("KETTLE_COLOUR", "green", "must be one of red, blue, not 'green'"),
        ("KETTLE_WHISTLES", "maybe", "must be true or false, not 'maybe'"),
    ],
)
def test_it_names_the_variable_and_what_is_wrong(read, name, value, says):
    with pytest.raises(ImproperlyConfigured, match=f"{name} {says}"):
        read(**{name: value})


def test_it_names_every_bad_variable_at_once(read):
    with pytest.raises(ImproperlyConfigured, match=r"KETTLE_LITRES .*; KETTLE_COLOUR"):
        read(KETTLE_LITRES="0", KETTLE_COLOUR="green")


def test_values_are_checked_again_where_they_are_used():
    assert resolve(Kettle, {"litres": 4}) == Kettle(litres=4)
    with pytest.raises(ImproperlyConfigured, match="unknown settings: handle"):
        resolve(Kettle, {"handle": "long"})
    with pytest.raises(ImproperlyConfigured, match="litres must be at most 5"):
        resolve(Kettle, {"litres": 9})


def test_it_knows_what_each_setting_means():
    assert declarations(Kettle)["litres"].meaning == "How much it holds."
