"""From a fresh clone to a finished run without any right of root."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .installation import START_SECONDS, Clone, fresh_clone

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(700),
    pytest.mark.skipif(os.getuid() != 0, reason="the whole session runs as an ordinary user"),
]
ACCOUNT = 65534


@pytest.fixture(scope="module")
def clone() -> Iterator[Clone]:
    with fresh_clone() as clone:
        clone.give_to(ACCOUNT)
        yield clone


def test_an_ordinary_user_can_do_it_too(clone: Clone) -> None:
    first = clone.starts("--once")

    assert first.ends(START_SECONDS) == 0, first.said()
    assert "the run completed, exit status 0" in first.said()


def test_a_second_start_of_the_user_reuses_everything(clone: Clone) -> None:
    second = clone.starts("--once")

    assert second.ends() == 0, second.said()
    assert "Installing" not in second.said()
    assert clone.processes() == {}
