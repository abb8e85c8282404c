"""`docs/how-a-run-lives.md` draws exactly the moves that there are."""

from __future__ import annotations

import re
from pathlib import Path

from runs.states import MOVES, TERMINAL, RunState

PAGE = Path(__file__).resolve().parents[2] / "docs/how-a-run-lives.md"
ARROW = re.compile(r"^    (\S+) --> ([^\s:]+)", re.MULTILINE)


def test_the_drawing_shows_every_move_and_no_other() -> None:
    arrows = set(ARROW.findall(PAGE.read_text()))

    outside = {("[*]", RunState.ADMITTED.value)} | {(state.value, "[*]") for state in TERMINAL}
    assert arrows - outside == {(before, after) for before, after in MOVES if before != after}
    assert outside <= arrows
