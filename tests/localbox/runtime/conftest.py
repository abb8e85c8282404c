"""Both runtimes for every test of this folder, as whoever runs the tests: root gives each box a uid."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from localbox.runtime import choose
from localbox.runtime.interface import Runtime, RuntimeFault

from .rig import Box, Rig


@cache
def _chosen(name: str) -> Runtime | str:
    try:
        return choose(name)
    except RuntimeFault as fault:
        return fault.message


def _runtime(name: str) -> Runtime:
    chosen = _chosen(name)
    if isinstance(chosen, str):
        pytest.skip(f"the runtime {name} does not work on this machine: {chosen}")
    return chosen


@pytest.fixture(params=["bwrap", "plain"])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return _runtime(request.param)


@pytest.fixture
def rig(runtime: Runtime) -> Iterator[Rig]:
    made = Rig(runtime)
    yield made
    made.close()


@pytest.fixture
def box(rig: Rig) -> Box:
    return rig.up()


@pytest.fixture
def bwrap_rig() -> Iterator[Rig]:
    made = Rig(_runtime("bwrap"))
    yield made
    made.close()


@pytest.fixture
def plain_rig() -> Iterator[Rig]:
    made = Rig(_runtime("plain"))
    yield made
    made.close()
