"""Fixtures of the tests of what operators use."""

from __future__ import annotations

from tests.fakes.fixtures import fake, provider

__all__ = ["fake", "provider"]
