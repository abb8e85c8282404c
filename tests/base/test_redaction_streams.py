"""What is withheld does not depend on how a log was cut."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from base.redaction import Piece, Policy, Redactor, RedactorState, redact
from base.redaction.rules import TOKENS
from tests.base.withheld import KEY, POLICY

FRAGMENTS = [
    *[rule.prefix for rule in TOKENS],
    *["a" * 16, "A" * 16, "w" * 20, "w" * 22, "w" * 43, "x" * 90, "abc", "Z" * 12],
    *["Bearer ", "basic ", "dXNlcg==", "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"],
    *[
        "-----BEGIN ",
        "PRIVATE KEY",
        "-----",
        "https://",
        "http://user",
        ":pa",
        "@host",
        "/path",
        "?",
        "&",
        "&amp;",
    ],
    *[
        "token=",
        "api-key=",
        "value",
        "password",
        "_token",
        "=",
        ":",
        " ",
        "\n",
        "\t",
        '"',
        "'",
        ".",
        "-",
        "_",
    ],
    *["\r", "\x1b[31m", "\x1b[0m", "\x1b", "\x1b]0;", "\0", "\r" * 9, "\u200b", "日本", "🙂", "é", "none"],
    *["\\", "\\n", "\\u", "00", "22", "%", "3D", "[", "32", ";", "m", "\\x", "\\u0026"],
    *[
        "known secret",
        "known",
        " secret",
        "secret listed",
        "listed",
        "tail\\",
        "desktop.",
        "viewer.box.io",
        "#",
    ],
]
pieces_of_logs = st.sampled_from([fragment.encode() for fragment in FRAGMENTS]) | st.sampled_from(
    [b"\xff", b"\xe2\x82", b"\x80", b"\xf0\x9f", b"\xed\xa0\x80"]
)
logs = st.lists(pieces_of_logs, max_size=14).map(b"".join) | st.binary(max_size=40)
cuts = st.lists(st.integers(0, 400), max_size=8) | st.just(list(range(400)))


def stream(log: bytes, at: list[int]) -> tuple[list[Piece], list[str]]:
    """The pieces of a log that came cut at these places, and what was readable after each part."""
    redactor, pieces, readable, start = Redactor(POLICY), [], [], 0
    for cut in [*sorted({cut for cut in at if cut < len(log)}), len(log)]:
        pieces += redactor.feed(log[start:cut])
        stored = json.loads(json.dumps(redactor.state.to_json()))
        redactor, start = Redactor(POLICY, RedactorState.from_json(stored)), cut
        assert redactor.received == cut
        readable.append("".join(piece.text for piece in pieces))
    return pieces + redactor.flush(), readable


@settings(max_examples=400, deadline=None)
@given(logs, cuts)
@example(b"sk-" + b"a" * 30, list(range(40)))
@example(b"x\\u001b[1;32msk-" + b"a" * 30, list(range(60)))
@example(b"x\\n" + b"w" * 43 + b" %3D" + b"w" * 43 + b".", list(range(110)))
@example(b"tail\\32" + b"w" * 43, [5])
@example(b"known secret\\n" + b"w" * 43 + b" secret listed\\nsk-" + b"a" * 30, list(range(110)))
@example(b"https://host/path?token=abcdef", list(range(40)))
@example(KEY.encode(), list(range(400)))
def test_however_a_log_is_cut_the_same_text_comes_out_and_nothing_is_taken_back(
    log: bytes, at: list[int]
) -> None:
    whole = "".join(piece.text for piece in stream(log, [])[0])

    pieces, readable = stream(log, at)

    assert "".join(piece.text for piece in pieces) == whole
    assert all(whole.startswith(text) for text in readable)


@settings(max_examples=200, deadline=None)
@given(logs, cuts)
def test_pieces_cover_the_log_and_exact_ones_are_its_bytes(log: bytes, at: list[int]) -> None:
    pieces, _ = stream(log, at)

    assert [piece.raw_end for piece in pieces[:-1]] == [piece.raw_start for piece in pieces[1:]]
    assert not log or (pieces[0].raw_start, pieces[-1].raw_end) == (0, len(log))
    assert all(log[piece.raw_start : piece.raw_end] == piece.text.encode() for piece in pieces if piece.exact)


@settings(max_examples=200, deadline=None)
@given(logs, st.integers(0, 400))
def test_a_log_may_be_read_again_from_where_its_fate_is_open(log: bytes, cut: int) -> None:
    whole = "".join(piece.text for piece in stream(log, [])[0])
    first = Redactor(POLICY)
    pieces = first.feed(log[:cut])

    again = Redactor(POLICY, first.state.without_held())
    pieces += again.feed(log[first.state.offset :]) + again.flush()

    assert "".join(piece.text for piece in pieces) == whole


@settings(max_examples=200, deadline=None)
@given(logs)
def test_a_complete_text_differs_from_a_stream_only_in_hiding_whole_urls(log: bytes) -> None:
    text = log.decode("utf-8", "replace")

    whole = redact(text, secrets=POLICY.secrets, is_secret_word=POLICY.is_secret_word)

    streamed = "".join(piece.text for piece in stream(text.encode(), [])[0])
    assert whole == re.sub(r"(?i)https?://[^\s\"'<>`]*?\[REDACTED_URL\]", "[REDACTED_URL]", streamed)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from([fragment for fragment in FRAGMENTS if fragment.isascii()]), max_size=6).map(
        "".join
    )
)
def test_a_quick_look_never_overlooks_a_secret(text: str) -> None:
    policy = Policy(POLICY.secrets)
    redactor = Redactor(policy)
    closely = "".join(piece.text for piece in redactor.feed(text.encode()) + redactor.flush())

    assert not policy.has_no_sign_of_a_secret(text) or closely == text


START = r"(?:\b|(?<=\\n)|(?<=%3D)|(?<=\\u0022)|(?<=\[32m))"
FORMS = re.compile(
    rf"{START}(?:sk-|smct_)[\w-]{{16}}|{START}oa_(?:pat|agent|assignment)_[\w.-]{{16}}|{START}gh[pousr]_[A-Za-z0-9]{{16}}"
    rf"|{START}AKIA[A-Z0-9]{{16}}|(?i:{START}bearer\s+[\w.~+/-])|https?://[^\s/?#\"'<>`\\@:]*:[^\s/?#\"'<>`\\@]*@"
    r"|known secret|w{42}",
    re.ASCII,
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.sampled_from([fragment for fragment in FRAGMENTS if fragment.isprintable()]), max_size=14
    ).map("".join)
)
def test_no_known_form_is_left_in_what_is_shown(text: str) -> None:
    """Looked for by expressions of its own, which share nothing with the rules."""
    shown = "".join(piece.text for piece in stream(text.encode(), [])[0])

    found = FORMS.search(shown.replace("[REDACTED]", "\n").replace("[REDACTED_URL]", "\n"))

    assert found is None or found[0].startswith("www"), (text, shown)


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        ("done https://openagents.com/clone", "done https://openagents.com/clone"),
        ("done https://openagents.com", "done "),
        ("hello", "hello"),
        ("say Bea", "say "),
        ("say Bearer ", "say "),
        ("x -----BEG", "x "),
        ("x sk-abc", "x "),
        ("GET /cb?tok", "GET /cb"),
        ("é".encode()[:1].decode("latin-1"), ""),
    ],
)
def test_only_what_can_still_become_a_secret_is_held_back(held: str, shown: str) -> None:
    redactor = Redactor()
    data = held.encode("latin-1") if held == "Ã" else held.encode()

    assert "".join(piece.text for piece in redactor.feed(data)) == shown
    assert redactor.received == len(data)
