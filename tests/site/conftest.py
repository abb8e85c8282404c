"""Fixtures of the tests that go through the whole site."""

from __future__ import annotations

from tests.fakes.fixtures import fake, provider

__all__ = ["fake", "provider"]
