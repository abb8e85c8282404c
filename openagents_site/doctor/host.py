"""What is looked at on this machine: settings, folders, programs."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

from django.conf import settings
from django.core import checks

from base import hooks
from base.amounts import counted
from boxes.conf import box_api, provider_is_here
from forge.conf import storage_root
from openagents_site.doctor import Finding, bad, good, warning
from openagents_site.registry import drivers

LEAST_FREE_BYTES = 1 << 30
OLDEST_GIT = (2, 36)


def settings_are_sound() -> list[Finding]:
    """Django's own checks and those of the apps, deployment warnings included where the site is public."""
    public = settings.PUBLIC_BASE_URL.startswith("https:")
    found = [
        bad(
            "settings",
            f"{message.id}: {message.msg}",
            message.hint or "see the settings' reference, .env.example",
        )
        for message in checks.run_checks(include_deployment_checks=public)
        if message.level >= checks.WARNING and not message.is_silenced()
    ]
    return found or [good("settings", "every check passes")]


def debug_is_off() -> list[Finding]:
    if settings.DEBUG:
        return [bad("debug", "DEBUG is on: errors show source and settings to everybody", "set DEBUG=false")]
    return [good("debug", "off")]


def tls() -> list[Finding]:
    host = settings.PUBLIC_BASE_URL
    if host.startswith("https:") or any(name in host for name in ("//127.0.0.1", "//localhost", "//[::1]")):
        return [good("tls", f"{host} is reached with TLS or from this machine alone")]
    return [
        warning(
            "tls",
            f"{host} carries tokens and passwords in the clear",
            "serve it with TLS, and set PUBLIC_BASE_URL",
        )
    ]


def webhook_secret() -> list[Finding]:
    if box_api().webhook_secret:
        return [good("webhooks", "/hooks/box takes signed deliveries")]
    if provider_is_here():
        return [good("webhooks", "the provider on this machine is asked, and need not tell")]
    return [
        warning(
            "webhooks",
            "/hooks/box answers 404: ends of boxes are seen by the next pass",
            "set BOX_WEBHOOK_SECRET",
        )
    ]


def folders() -> list[Finding]:
    """The state folder's parts: there, writable where they must be, closed to others, with room on their disk."""
    root = Path(settings.STATE_ROOT)
    found = [_closed("secrets", root / "private"), _closed("repositories", storage_root()), _room(root)]
    return [finding for finding in found if finding is not None]


def git() -> list[Finding]:
    program = shutil.which("git")
    if program is None:
        return [bad("git", "there is none on PATH: repositories cannot be served", "install git")]
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    version = tuple(int(part) for part in said.split()[2].split(".")[:2] if part.isdigit())
    if version < OLDEST_GIT:
        return [bad("git", f"{said} is too old", "install git 2.36 or newer")]
    return [good("git", said)]


def registered() -> list[Finding]:
    """What the apps registered, so that a part that is missing is seen."""
    counts = {hook.name: len(hook.registered()) for hook in hooks.ALL}
    empty = [name for name, count in counts.items() if not count]
    seen = f"{sum(counts.values())} registered with {counted(len(counts), 'hook')}"
    seen += f", none with {', '.join(empty)}" if empty else ""
    return [good("hooks", seen), good("drivers", ", ".join(driver.name for driver in drivers()))]


def _closed(check: str, folder: Path) -> Finding | None:
    if not folder.exists():
        return None  # it is made on first use
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        return bad(
            check, f"{folder} has mode {mode:04o}: other accounts may look into it", f"chmod 700 {folder}"
        )
    return good(check, f"{folder}, mode {mode:04o}")


def _room(root: Path) -> Finding:
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < LEAST_FREE_BYTES:
        return bad(
            "disk", f"{free >> 20} MiB are free at {existing}", "make room: the database stops at a full disk"
        )
    return good("disk", f"{free >> 30} GiB are free at {existing}")
