"""Fault points do nothing until a test arms them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from base.faults import FaultRaised, armed, declare, declared, fault_point

POINT = declare("tests.point", "a point of these tests")


def test_it_does_nothing_in_service():
    fault_point(POINT)
    assert declared()[POINT] == "a point of these tests"


def test_it_raises_while_armed_and_not_after():
    with armed(POINT, "raise"), pytest.raises(FaultRaised):
        fault_point(POINT)
    fault_point(POINT)


def test_it_calls_what_it_is_armed_with():
    calls = []
    with armed(POINT, lambda: calls.append(1)):
        fault_point(POINT)
    assert calls == [1]


def test_a_misspelt_point_is_an_error():
    with pytest.raises(KeyError), armed("tests.piont", "raise"):
        pass
    with pytest.raises(ValueError, match="can raise, kill or sleep"), armed(POINT, "explode"):
        pass


def test_a_process_can_be_started_to_die_at_a_point():
    program = "from base.faults import *; declare('tests.child', 'dies'); fault_point('tests.child'); print('alive')"
    child = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"FAULT_POINTS": "tests.child=kill"},
        capture_output=True,
    )
    assert (child.returncode, child.stdout) == (-signal.SIGKILL, b"")
