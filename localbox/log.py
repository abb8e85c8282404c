"""Log lines: one JSON object each on standard error, an event name and its keys. Never a secret or a command."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from .times import iso

_LOGGER = logging.getLogger("localbox")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"at": iso(record.created), "level": record.levelname.lower()}
        line["event"] = record.getMessage()
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure(level: str) -> None:
    """Send the provider's lines to standard error. Warnings of the libraries below it come along."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    _LOGGER.setLevel(level.upper())


def enabled_for(level: int) -> bool:
    return _LOGGER.isEnabledFor(level)


def debug(event: str, **fields: object) -> None:
    _LOGGER.debug(event, extra={"fields": fields})


def info(event: str, **fields: object) -> None:
    _LOGGER.info(event, extra={"fields": fields})


def warning(event: str, **fields: object) -> None:
    _LOGGER.warning(event, extra={"fields": fields})


def exception(event: str, **fields: object) -> None:
    """An error nobody expected, with its traceback; call it inside an `except`."""
    _LOGGER.exception(event, extra={"fields": fields})
