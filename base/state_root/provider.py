"""Where the embedded provider of this installation listens: its port may differ from start to start."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import explained
from .location import resolve

FILE = "provider-url"


def provider_url(folder: Path | None = None) -> str | None:
    """The address that was recorded last, None if there is none or this account may not see it."""
    try:
        return ((folder or resolve()) / FILE).read_text().strip() or None
    except OSError:
        return None


def record_provider_url(url: str, folder: Path | None = None) -> None:
    """Tell every later process of the installation, before they start. The state folder must have been prepared."""
    target = (folder or resolve()) / FILE
    unfinished = target.with_name(f".{FILE}.{os.getpid()}")
    with explained(target.parent):
        unfinished.write_text(f"{url}\n")
        unfinished.replace(target)
