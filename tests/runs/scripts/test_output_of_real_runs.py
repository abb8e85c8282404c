"""The way of a run's output from the box to a reader, in small pieces: nothing lost, split or let slip."""

from __future__ import annotations

import pytest

from base.redaction import Policy, Redactor, redact
from runs.log_text import LogText
from tests.runs.scripts.conftest import ScriptBox

SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"


def follow(box: ScriptBox, command: str, limit: int) -> tuple[LogText, bytes, list[str]]:
    """Poll a run in pieces of at most `limit` bytes; its text, its raw log, and what was readable after each poll."""
    box.dispatch(command)
    redactor, text, raw, readable = Redactor(Policy()), LogText(), b"", []
    while True:
        reply = box.poll(redactor.received, max_bytes=limit, wait_seconds=5)
        assert reply.log.offset == redactor.received
        raw += reply.log.data
        text = text.followed_by(LogText.of(redactor.feed(reply.log.data), text.end))
        readable.append(text.data.decode())
        if raw:
            (box.home / "was-read").touch()
        if reply.is_drained:
            return text.followed_by(LogText.of(redactor.flush(), text.end)), raw, readable


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 4_096])
def test_characters_written_byte_by_byte_stay_whole(dash_box: ScriptBox, limit: int) -> None:
    command = "for b in 346 227 245 346 234 254 360 237 231 202 303 251; do printf \"\\\\$b\"; sleep 0.01; done; printf '\\377\\376'"

    text, raw, readable = follow(dash_box, command, limit)

    assert raw == "日本🙂é".encode() + b"\xff\xfe"
    assert text.data.decode() == "日本🙂é\ufffd"
    assert all("日本🙂é\ufffd".startswith(shown) for shown in readable)


@pytest.mark.parametrize("seam", ["", "\\r", "\\033[31m", "\\000"])
def test_a_secret_written_in_halves_is_never_readable(dash_box: ScriptBox, seam: str) -> None:
    until_read = "until [ -e $HOME/was-read ]; do sleep 0.05; done"
    command = f"printf 'key {SECRET[:14]}'; {until_read}; printf '{seam}{SECRET[14:]} end'"

    text, _, readable = follow(dash_box, command, 4_096)

    assert text.data.decode() == "key [REDACTED] end"
    assert len(readable) > 1
    assert all(SECRET[:6] not in shown for shown in readable)


def test_a_key_that_is_longer_than_a_piece_is_never_readable(dash_box: ScriptBox) -> None:
    lines = "\\n".join("MIIEpAIBAAKCAQEA0123456789abcdefABCDEF+/" for _ in range(40))
    command = f"printf 'a\\n-----BEGIN PRIVATE KEY-----\\n{lines}\\n-----END PRIVATE KEY-----\\nb'"

    text, _, readable = follow(dash_box, command, 100)

    assert text.data.decode() == "a\n[REDACTED]\nb"
    assert all("MII" not in shown for shown in readable)


def test_a_nul_is_a_visible_mark(dash_box: ScriptBox) -> None:
    text, raw, _ = follow(dash_box, "printf 'a\\000b'", 1)

    assert (raw, text.data.decode()) == (b"a\0b", "a␀b")


def test_offsets_stay_those_of_the_log_on_the_box(dash_box: ScriptBox) -> None:
    text, raw, _ = follow(dash_box, f"printf 'one {SECRET} two\\n'; printf 'https://u:p@host/x three'", 7)

    assert text.end == len(raw)
    assert text.data.decode() == redact(raw.decode())
    assert text.read(raw.index(b"two")).text == "two\n[REDACTED_URL] three"
