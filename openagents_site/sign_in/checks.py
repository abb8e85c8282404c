"""What `manage.py check` says of the settings of signing in."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.core.checks import CheckMessage, Error, register

from openagents_site.sign_in.conf import sign_in_settings


@register()
def github_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Both halves of the OAuth app are there, or neither, and GitHub's address is one."""
    conf, found = sign_in_settings(), list[CheckMessage]()
    if bool(conf.github_client_id) != bool(conf.github_client_secret):
        missing = "GITHUB_CLIENT_SECRET" if conf.github_client_id else "GITHUB_CLIENT_ID"
        found.append(
            Error(
                f"Only half of the GitHub sign-in is set: {missing} is missing",
                hint="Set GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET, or neither.",
                id="sign_in.E001",
            )
        )
    if urlsplit(conf.github_url).scheme not in {"http", "https"} or not urlsplit(conf.github_url).hostname:
        found.append(Error("GITHUB_URL must be an http or https address with a host", id="sign_in.E002"))
    return found
