"""What others send stays one value of one line: in logs, in histories, on a terminal."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from django.test import Client

from openagents_site.log_config import logging_settings

FORGED = 'x\n{"event": "forged"}\r\x1b[2J\x1b]0;title\x07\u202e'


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the root logger's handler writes while a test runs; the test says in which form."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, structlog.get_config())
    yield (written := io.StringIO())
    written.close()
    root.handlers[:], level = before[0], before[1]
    root.setLevel(level)
    structlog.configure(**before[2])


def line_of(written: io.StringIO, *, human: bool) -> str:
    logging_settings(level="INFO", human=human)
    (handler,) = (one for one in logging.getLogger().handlers if type(one) is logging.StreamHandler)
    handler.setStream(written)
    structlog.get_logger("tests").info("asked", label=FORGED, others=[FORGED])
    return written.getvalue()


def test_a_line_of_the_log_is_one_object(logged: io.StringIO) -> None:
    written = line_of(logged, human=False)

    assert written.count("\n") == 1
    assert json.loads(written)["label"] == FORGED


def test_a_line_on_a_terminal_moves_no_cursor(logged: io.StringIO) -> None:
    written = line_of(logged, human=True)

    assert written.count("\n") == 1
    assert not [part for part in ("\x1b[2J", "\x1b]0;", "\x07", "\r", "\u202e") if part in written]


@pytest.mark.django_db
@pytest.mark.parametrize("sent", ["trace-1", "x" * 5_000, 'a", "user": "root'])
def test_nobody_chooses_the_name_of_a_request(
    client: Client, caplog: pytest.LogCaptureFixture, sent: str
) -> None:
    client.get("/api/v1/me", headers={"X-Request-ID": sent, "X-Correlation-ID": sent})

    assert caplog.records
    assert not [record for record in caplog.records if sent in str(record.msg)]
