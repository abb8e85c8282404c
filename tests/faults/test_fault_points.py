"""The list of fault points is written down, and is the one of the sources."""

from __future__ import annotations

import re

from tests.faults.fault_points import APPS, CHECKOUT, PAGE, declared, page


def test_the_page_lists_every_fault_point() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.faults.fault_points`"


def test_no_point_is_overlooked_for_how_it_is_written() -> None:
    """What the sources declare, however they are laid out, is what was read."""
    calls = sum(
        len(re.findall(r"= (?:faults\.)?declare\(", file.read_text()))
        for app in APPS
        for file in (CHECKOUT / app).rglob("*.py")
    )

    assert len(declared()) == calls
