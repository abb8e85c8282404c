"""What `manage.py check` says about the machine that the forge runs on."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from forge.git.environment import http_backend


@register()
def git_is_installed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Repositories are served by `git` itself."""
    try:
        http_backend()
    except (OSError, ValueError) as error:
        return [
            Error(f"Git is needed: {error}", hint="Install git (with git-http-backend).", id="forge.E001")
        ]
    return []
