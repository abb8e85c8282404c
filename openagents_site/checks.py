"""What `manage.py check` says of settings of several apps that do not go together."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

from forge.conf import forge_settings


@register()
def threads_are_left(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Git requests of strangers cannot take every thread of a web process."""
    threads, strangers = settings.WEB_THREADS, forge_settings().anonymous_requests
    if strangers < threads:
        return []
    return [
        Warning(
            f"Git requests without a credential may hold all {threads} threads of a web process",
            hint=f"Set FORGE_ANONYMOUS_REQUESTS ({strangers}) below WEB_THREADS ({threads}).",
            id="site.W001",
        )
    ]
