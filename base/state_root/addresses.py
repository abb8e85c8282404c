"""Where the site and the embedded provider of this installation are reached: their ports may differ from start to start."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import explained
from .location import resolve

PROVIDER, SITE = "provider-url", "site-url"


def provider_url(folder: Path | None = None) -> str | None:
    """The provider's address that was recorded last, None if there is none or this account may not see it."""
    return _recorded(PROVIDER, folder)


def record_provider_url(url: str, folder: Path | None = None) -> None:
    """Tell every later process of the installation, before they start. The state folder must have been prepared."""
    _record(PROVIDER, url, folder)


def site_url(folder: Path | None = None) -> str | None:
    """The site's address that was recorded last, None if there is none or this account may not see it."""
    return _recorded(SITE, folder)


def record_site_url(url: str, folder: Path | None = None) -> None:
    """As `record_provider_url`."""
    _record(SITE, url, folder)


def _recorded(file: str, folder: Path | None) -> str | None:
    try:
        return ((folder or resolve()) / file).read_text().strip() or None
    except OSError:
        return None


def _record(file: str, url: str, folder: Path | None) -> None:
    target = (folder or resolve()) / file
    unfinished = target.with_name(f".{file}.{os.getpid()}")
    with explained(target.parent):
        unfinished.write_text(f"{url}\n")
        unfinished.replace(target)
