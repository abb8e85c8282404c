"""What the operator is told about boxes on this machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from localbox import doctor
from localbox.runtime import programs
from localbox.settings import Settings

from .rig import IS_ROOT, Rig


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path / "state", sandbox="plain")


def _text(report: list[doctor.Line], subject: str) -> str:
    return "\n".join(line.text for line in report if line.subject == subject)


def test_it_says_what_a_plain_box_is_worth(settings: Settings) -> None:
    report = doctor.report(settings)

    assert _text(report, "runtime").startswith("plain.")
    assert ("a uid of its own" if IS_ROOT else "none: every box runs as this user") in _text(
        report, "isolation"
    )
    assert "bash" in _text(report, "bash in a box")


def test_it_says_what_walls_there_are(settings: Settings, bwrap_rig: Rig) -> None:
    report = doctor.report(dataclasses.replace(settings, sandbox="bwrap"))

    assert _text(report, "runtime").startswith("bwrap.")
    assert "boxes see neither each other nor the provider" in _text(report, "isolation")
    assert "bubblewrap" in _text(report, "bwrap")


def test_it_says_that_there_can_be_no_boxes(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "bwrap_candidates", list)

    report = doctor.report(dataclasses.replace(settings, sandbox="bwrap"))

    assert [line.level for line in report if line.subject == "runtime"] == ["failed"]


def test_it_looks_at_the_folders(settings: Settings) -> None:
    settings.private_dir.mkdir(parents=True, mode=0o755)
    settings.private_dir.chmod(0o755)

    report = doctor.report(settings)

    assert f"{settings.boxes_dir}: not there yet" in _text(report, "folder")
    assert f"{settings.private_dir}: mode 0755" in _text(report, "folder")
    assert "expected 0700" in _text(report, "folder")
    assert "GiB" in _text(report, "free disk")


def test_it_prints_one_finding_a_line(settings: Settings) -> None:
    report = doctor.report(settings)

    assert len(str(report).splitlines()) == len(report)
