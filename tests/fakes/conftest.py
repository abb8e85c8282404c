from __future__ import annotations

from tests.fakes.fixtures import fake, fake_boat  # noqa: F401 - pytest finds fixtures by name
