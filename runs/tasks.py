"""Entry points for scheduled tasks; a second delivery at the same time does no harm."""

from __future__ import annotations

import structlog

from boxes.conf import box_api
from runs import pump, retention, services

log = structlog.get_logger(__name__)


def drive_runs() -> None:
    """Make due what nobody drives, and give every due run one step: without a worker runs are slower, not stuck."""
    services.recover()
    counts = pump.run_once()
    if counts.claimed:
        log.info("runs_driven", claimed=counts.claimed, settled=counts.settled, failed=counts.failed)


def prune_logs() -> None:
    """Delete the whole logs of runs that ended longer ago than the retention setting says."""
    days = box_api().run_log_retention_days
    if days:
        log.info("logs_pruned", chunks=retention.prune_logs(older_than_days=days))
