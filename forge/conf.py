"""Settings of the forge, read at call time from `settings.FORGE`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from base.conf import resolve, setting

MIB = 1024 * 1024


@dataclass(frozen=True)
class ForgeSettings:
    storage_root: str = setting(
        "", "FORGE_STORAGE_ROOT", "Folder of the Git repositories. Empty: `repositories` in the state folder."
    )
    push_bytes: int = setting(
        512 * MIB,
        "FORGE_PUSH_BYTES",
        "Largest body of a push, as sent and unpacked.",
        minimum=MIB,
        maximum=16 * 1024 * MIB,
    )
    push_seconds: int = setting(
        3600, "FORGE_PUSH_SECONDS", "Longest time of one push or fetch.", minimum=10, maximum=86_400
    )
    stall_seconds: int = setting(
        60,
        "FORGE_STALL_SECONDS",
        "How long a client of a fetch may take for each 64 KiB that it sends or is sent.",
        minimum=1,
        maximum=3600,
    )
    anonymous_requests: int = setting(
        64,
        "FORGE_ANONYMOUS_REQUESTS",
        "Git requests without a credential that a web process serves at once; a quarter of them to one address.",
        minimum=1,
        maximum=10_000,
    )
    push_memory_bytes: int = setting(
        2048 * MIB,
        "FORGE_PUSH_MEMORY_BYTES",
        "Memory that each process of Git may take for a push. Linux only.",
        minimum=256 * MIB,
    )
    pack_threads: int = setting(
        2, "FORGE_PACK_THREADS", "Threads that Git packs with, for each fetch.", minimum=1, maximum=64
    )


def forge_settings() -> ForgeSettings:
    return resolve(ForgeSettings, settings.FORGE)


def storage_root() -> Path:
    """The folder that holds every repository; it is made on first use."""
    given = forge_settings().storage_root
    return Path(given) if given else Path(settings.STATE_ROOT) / "repositories"
