"""What `manage.py check` says of settings that do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from openagents_site.checks import threads_are_left


@pytest.mark.parametrize(("strangers", "found"), [(99, []), (100, ["site.W001"]), (101, ["site.W001"])])
def test_strangers_cannot_hold_every_thread_of_a_web_process(
    settings: Any, strangers: int, found: list[str]
) -> None:
    settings.FORGE = settings.FORGE | {"anonymous_requests": strangers}
    settings.WEB_THREADS = 100

    assert [message.id for message in threads_are_left(None)] == found
