"""Settings of paired machines, read at call time from `settings.MACHINES`."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from base.conf import resolve, setting


@dataclass(frozen=True)
class MachineSettings:
    """The `MACHINES` family."""

    enabled: bool = setting(
        True, "MACHINES_ENABLED", "Whether computers may be paired and delegated to. False: both are refused."
    )
    reconnect_seconds: int = setting(
        90,
        "MACHINES_RECONNECT_SECONDS",
        "How long a running delegation waits for its machine to come back.",
        minimum=1,
        maximum=3600,
    )
    client_address_header: str = setting(
        "",
        "MACHINES_CLIENT_ADDRESS_HEADER",
        "Header in which a trusted proxy names the client (X-Real-IP). Empty: the address of the connection.",
    )
    pairing_starts_per_minute: int = setting(
        10, "MACHINES_PAIRING_STARTS_PER_MINUTE", "Pairings that one address may ask for.", minimum=1
    )
    pairing_starts_per_minute_global: int = setting(
        120, "MACHINES_PAIRING_STARTS_PER_MINUTE_GLOBAL", "Pairings that all together may ask for.", minimum=1
    )


def machine_settings() -> MachineSettings:
    """The settings in force now. Raises ImproperlyConfigured for an unknown name or a value out of bounds."""
    return resolve(MachineSettings, settings.MACHINES)
