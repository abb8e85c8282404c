"""Logging: one JSON object a line (readable lines on a terminal), secrets struck out by a processor."""

from __future__ import annotations

import logging.config
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from base.redaction import redact_mapping
from base.text import display_text


def strike_secrets(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Known secrets never reach a log line, whoever logs them."""
    return redact_mapping(event)


def show_plainly(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """For a terminal: what others sent is shown as characters of one line, and moves no cursor."""
    return {
        name: _one_line(value) if isinstance(value, str) and name != "exception" else value
        for name, value in event.items()
    }


def _one_line(text: str) -> str:
    return display_text(text).replace("\n", "\\n")


def shared_processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        strike_secrets,
    ]


def logging_settings(*, level: str, human: bool) -> None:
    """Configure structlog and the standard library's logging alike; `human` for a terminal."""
    rendering: list[Any] = (
        [show_plainly, structlog.dev.ConsoleRenderer()] if human else [structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared_processors()[:3],
            *shared_processors()[4:],
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
                    "foreign_pre_chain": shared_processors(),
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                "django.server": {"level": "WARNING"},
                "django_structlog": {"level": "WARNING"},
                # Every request has a line of its own with the status (request_finished), or with the trace (request_failed).
                "django.request": {"level": "CRITICAL"},
            },
        }
    )
