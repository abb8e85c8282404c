"""`bin/faults` itself: which rounds it plays, for how long, and how it is ended."""

from __future__ import annotations

import os
import signal

import pytest

from tests.faults import long
from tests.faults.random_round import Outcome


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of the rounds, of which each takes a minute of a clock of its own."""
    seeds = list[int]()

    def play(seed: int, *_: object) -> Outcome:
        seeds.append(seed)
        return Outcome(seed)

    monkeypatch.setattr(long, "_round", play)
    monkeypatch.setattr(long.Progress, "elapsed", property(lambda self: 60.0 * len(seeds)))
    return seeds


@pytest.mark.parametrize("seed", [0, 7, -1])
def test_it_plays_the_seed_that_it_is_given_and_the_next_ones_as_long_as_it_may(
    played: list[int], seed: int
) -> None:
    assert long.main(["--seed", str(seed), "--minutes", "2.5"]) == 0

    assert played == [seed, seed + 1, seed + 2]


def test_one_round_is_played_at_least(played: list[int]) -> None:
    assert long.main(["--minutes", "0"]) == 0

    assert len(played) == 1


@pytest.mark.parametrize("minutes", ["nan", "inf", "-1", "x"])
def test_a_time_that_is_none_is_refused(played: list[int], minutes: str) -> None:
    with pytest.raises(SystemExit):
        long.main([f"--minutes={minutes}"])

    assert played == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_is_ended_once_and_clears_away_undisturbed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    cleared = list[str]()

    def play(*_: object) -> Outcome:
        try:
            os.kill(os.getpid(), number)
            raise AssertionError("it goes on")
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            cleared.append("all")

    monkeypatch.setattr(long, "_round", play)
    before = [signal.getsignal(each) for each in long.ENDS]

    assert long.main(["--seed", "1"]) == 130
    assert (cleared, [signal.getsignal(each) for each in long.ENDS]) == (["all"], before)
    assert capfd.readouterr().out == "ended early\n0 rounds, 0 held\n"
