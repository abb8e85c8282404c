"""Every check, in the order in which they are told. A check that breaks is a finding like any other."""

from __future__ import annotations

import structlog

from openagents_site.doctor import Check, Finding, Level, bad, host, ledger, processes, webhooks

log = structlog.get_logger(__name__)
WITHOUT_DATABASE: tuple[Check, ...] = (
    host.settings_are_sound,
    host.debug_is_off,
    host.tls,
    host.webhook_secret,
    host.folders,
    host.git,
    ledger.provider,
)
WITH_DATABASE: tuple[Check, ...] = (
    ledger.schedules,
    ledger.slots,
    processes.processes,
    ledger.stuck_rows,
    webhooks.deliveries,
)


def examine() -> list[Finding]:
    """Every finding. What needs the database is left out while that cannot be used."""
    found = [finding for check in (*WITHOUT_DATABASE, ledger.database) for finding in _findings(check)]
    usable = all(
        finding.level is not Level.BAD for finding in found if finding.check in {"database", "migrations"}
    )
    for check in WITH_DATABASE if usable else ():
        found += _findings(check)
    return found + _findings(host.registered)


def _findings(check: Check) -> list[Finding]:
    try:
        return check()
    except Exception as error:
        log.exception("doctor_check_failed", check=check.__name__)
        return [bad(check.__name__, f"could not be looked at: {type(error).__name__}", "see the log")]
