"""How often pairing may be asked for and codes may be tried; counted in the database, for all web processes alike."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from django.http import HttpRequest

from accounts import rates
from base.addresses import counted, last_named
from work.machines_conf import machine_settings

CODES_PER_MINUTE = 20
"""Codes that one user may try, right ones too: were only wrong ones counted, a right guess would always get through."""

CODES_PER_MINUTE_GLOBAL = 300
POLLS_PER_MINUTE = 120


def count_start(request: HttpRequest) -> None:
    """Count one start of a pairing. Raises RateLimited."""
    limits = machine_settings()
    rates.count(_from_whom(request), "pairing_start", limits.pairing_starts_per_minute)
    rates.count("everybody", "pairing_start", limits.pairing_starts_per_minute_global)


def count_poll(request: HttpRequest) -> None:
    """Count one look whether a pairing was approved. Raises RateLimited."""
    rates.count(_from_whom(request), "pairing_poll", POLLS_PER_MINUTE)


def count_code(user_id: UUID | int) -> None:
    """Count one code that a user tries. Raises RateLimited."""
    rates.count(f"user:{user_id}", "pairing_code", CODES_PER_MINUTE)
    rates.count("everybody", "pairing_code", CODES_PER_MINUTE_GLOBAL)


def client_address(request: HttpRequest) -> str:
    """Whom a request comes from: the connection's address, or what the trusted proxy says if one is set."""
    header = machine_settings().client_address_header
    named = last_named(request.headers.get(header, "")) if header else ""
    return (named or str(request.META.get("REMOTE_ADDR", "")))[:80]


def _from_whom(request: HttpRequest) -> str:
    address = client_address(request)
    with suppress(ValueError):
        address = counted(address)
    return f"address:{address}"
