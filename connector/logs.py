"""The log: one line an event, on standard error. No prompt, no word of an agent, no token and no credential is ever in it."""

from __future__ import annotations

import logging
import sys
import time

log = logging.getLogger("connector")


def set_up() -> None:
    """Send our own lines to standard error. What libraries log may quote what they carry, so it goes nowhere."""
    logging.getLogger().handlers = [logging.NullHandler()]
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


def event(name: str, **values: object) -> None:
    """One line: the event's name and its values."""
    log.info("%s%s", name, "".join(f" {key}={value}" for key, value in values.items()))


def trouble(name: str, **values: object) -> None:
    """The same, for what should be looked at."""
    log.warning("%s%s", name, "".join(f" {key}={value}" for key, value in values.items()))
