"""Entry point of the scheduled task; a second delivery at the same time does no harm."""

from __future__ import annotations

import structlog

from boxes.conf import box_api
from runs import retention

log = structlog.get_logger(__name__)


def prune_logs() -> None:
    """Delete the whole logs of runs that ended longer ago than the retention setting says."""
    days = box_api().run_log_retention_days
    if days:
        log.info("logs_pruned", chunks=retention.prune_logs(older_than_days=days))
