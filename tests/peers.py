"""Marks for tests that run against an optional program: `@needs("chromium")`, or `pytestmark = needs("node")`.

Where the program is missing such a test is skipped, and `bin/test` lists it as left out. Under `bin/test --all`
(TEST_ALL=1) nothing is left out: a missing program is an error of the collection, so the whole run fails.
"""

from __future__ import annotations

import os

import pytest

from openagents_site.launcher.peers import PEERS


def needs(name: str) -> pytest.MarkDecorator:
    """Skip the test unless the peer is installed. The names are those of `openagents_site.launcher.peers.PEERS`."""
    peer = PEERS[name]
    missing = not peer.is_there()
    if missing and os.environ.get("TEST_ALL") == "1":
        raise RuntimeError(f"{peer.title} is not installed, and nothing may be left out")
    return pytest.mark.skipif(missing, reason=f"needs {peer.title}, which is not installed")
