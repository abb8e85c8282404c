"""What is withheld, what stays, and that neither depends on how a log was cut."""

from __future__ import annotations

import json
import re
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from base.redaction import Piece, Policy, Redactor, RedactorState, redact, redact_mapping
from base.redaction.rules import MOST_KEY_BLOCK, TOKENS

LONG = "a1B2" * 12
KEY = f"-----BEGIN RSA PRIVATE KEY-----\nMII{LONG}\n{LONG}=\n-----END RSA PRIVATE KEY-----"

WITHHELD = {
    "sk-" + LONG: "[REDACTED]",
    "sk-or-v1-" + LONG: "[REDACTED]",
    "oa_pat_" + LONG: "[REDACTED]",
    "oa_agent_" + LONG: "[REDACTED]",
    f"oa_assignment_0190-ab.{LONG}": "[REDACTED]",
    "smct_" + LONG: "[REDACTED]",
    "AKIAIOSFODNN7EXAMPLE": "[REDACTED]",
    "ASIAIOSFODNN7EXAMPLE": "[REDACTED]",
    "ghp_" + "Ab1" * 12: "[REDACTED]",
    "github_pat_11ABC_" + LONG: "[REDACTED]",
    "glpat-" + LONG[:20]: "[REDACTED]",
    "xoxb-1234-5678-" + LONG: "[REDACTED]",
    "AIza" + LONG[:35]: "[REDACTED]",
    "npm_" + "Ab1" * 12: "[REDACTED]",
    "pypi-AgEIcHlwaS5vcmc" + LONG: "[REDACTED]",
    "hf_" + "Ab" * 17: "[REDACTED]",
    "Authorization: Bearer abc.def-_~+/==": "Authorization: [REDACTED]",
    "authorization: bEARER \t x": "authorization: [REDACTED]",
    "Basic dXNlcjpwYXNz": "[REDACTED]",
    KEY: "[REDACTED]",
    KEY.replace("RSA ", ""): "[REDACTED]",
    KEY.replace("RSA", "OPENSSH"): "[REDACTED]",
    "https://user:pa55@host.example/path?x#y": "[REDACTED_URL]",
    "HTTPS://USER:PA55@HOST": "[REDACTED_URL]",
    "http://ghs_0123456789abcdefghij@host/x": "[REDACTED_URL]",
    "https://host/cb?token=abc": "[REDACTED_URL]",
    "https://host/cb?a=1&access_token=abc&b=2": "[REDACTED_URL]",
    "https://host/cb?api-key=x": "[REDACTED_URL]",
    "https://host/cb?ApiKey=x": "[REDACTED_URL]",
    "https://host/cb?authenticationtoken=x": "[REDACTED_URL]",
    "https://host/cb?x=1&amp;secret=x": "[REDACTED_URL]",
    "https://host/cb#credential=x": "[REDACTED_URL]",
    "https://desktop.boxes.example/session/1": "[REDACTED_URL]",
    "http://viewer.boxes.example:8443": "[REDACTED_URL]",
    "PASSWORD=hunter2": "PASSWORD=[REDACTED]",
    "db_password: hunter2": "db_password: [REDACTED]",
    '"password": "correct horse"': '"password": "[REDACTED]"',
    "'api_key' = 'k e y !'": "'api_key' = '[REDACTED]'",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG": "aws_secret_access_key = [REDACTED]",
    "GITHUB_TOKEN=abcdefgh12": "GITHUB_TOKEN=[REDACTED]",
    "MYSQL_PWD=hunter2222": "MYSQL_PWD=[REDACTED]",
    "--password=pa$$(word)": "--password=[REDACTED]",
}

SHOWN = [
    "https://openagents.com/clone",
    "https://github.com/owner/repo.git",
    "http://git@host/path",
    "https://host:8443/a/b?page=2&sort=desc#top",
    "https://host/cb?token=&x=1",
    "git clone https://forge.example/o/r.git && cd r",
    "disk-usage task-queue risk-assessment-of-everything",
    "a basic example of Basic usage",
    "token: identifier",
    "Unexpected token: }",
    "the password is wrong",
    "Password: ",
    "password = None",
    "PASSWORD=$SECRET",
    "password=${PASSWORD}",
    "if password == other:",
    "def f(password: string) -> None",
    "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "PWD=/root/work",
    "skeleton sk-short",
    "日本🙂é",
]


@pytest.mark.parametrize("text", WITHHELD)
def test_it_withholds(text: str) -> None:
    assert redact(text) == WITHHELD[text]
    assert redact(f"before {text} after") == f"before {WITHHELD[text]} after"


@pytest.mark.parametrize("text", SHOWN)
def test_it_shows(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("rule", TOKENS, ids=lambda rule: rule.prefix)
def test_a_token_is_withheld_from_its_shortest_length_on(rule: object) -> None:
    digit = "a" if rule.follow == "a-f0-9" else "A"  # type: ignore[attr-defined]
    shortest = rule.prefix + digit * rule.least  # type: ignore[attr-defined]

    assert redact(f"({shortest})") == "([REDACTED])"
    assert redact(f"({shortest[:-1]})") == f"({shortest[:-1]})"
    assert redact(f"x{shortest}") == f"x{shortest}"


@pytest.mark.parametrize("gap", ["\r", "\x1b[31m", "\x1b[0m\x1b[1m", "\0", "\x07", "\u200b", "\x1b(B"])
@pytest.mark.parametrize(
    "text", ["sk-" + LONG, "Bearer " + LONG, "https://user:pass@host/x", "known secret", KEY]
)
def test_something_invisible_inside_hides_nothing(text: str, gap: str) -> None:
    for at in (1, 2, len(text) // 2, len(text) - 1):
        shown = redact(f"<{text[:at]}{gap}{text[at:]}>", secrets=["known secret"])

        assert re.sub("[<>]", "", shown) in ("[REDACTED]", "[REDACTED_URL]"), (at, shown)


def test_a_carriage_return_begins_a_word() -> None:
    assert redact(f"progress\rsk-{LONG}\r\n") == "progress\r[REDACTED]\r\n"


def test_a_secret_may_follow_another_without_anything_between() -> None:
    assert redact(f"hunter2sk-{LONG}", secrets=["hunter2"]) == "[REDACTED][REDACTED]"


def test_a_colour_after_a_secret_stays() -> None:
    assert redact(f"\x1b[31msk-{LONG}\x1b[0m done") == "\x1b[31m[REDACTED]\x1b[0m done"


def test_a_key_block_without_an_end_is_withheld_to_its_bound() -> None:
    text = "-----BEGIN PRIVATE KEY-----\n" + "x" * (MOST_KEY_BLOCK + 10)

    assert redact(text) == "[REDACTED]" + "x" * 11
    assert redact(text[:500]) == "[REDACTED]"


def test_listed_values_are_withheld_wherever_they_stand() -> None:
    assert (
        redact("xx[hunter2]hunter22", secrets=["hunter2", "hunter22", "", "abc"])
        == "xx[[REDACTED]][REDACTED]"
    )


def test_a_listed_value_may_have_several_lines() -> None:
    assert redact("a\nline one\nline two\nb", secrets=["line one\nline two\n"]) == "a\n[REDACTED]\nb"


@pytest.mark.parametrize("length", [39, 40, 43, 100, 101])
def test_words_are_judged_by_the_callback(length: int) -> None:
    word = "w" * length
    asked: list[str] = []

    shown = redact(f"a {word} b", is_secret_word=lambda found: asked.append(found) or True)

    assert shown == ("a [REDACTED] b" if 40 <= length <= 100 else f"a {word} b")
    assert asked == ([word] if 40 <= length <= 100 else [])


@pytest.mark.parametrize("text", ["{}", "x:{}@host", "bar\r{}", "{}\rmore", "\x1b[32m{}\x1b[0m", "={}\n"])
@pytest.mark.parametrize("cut", [None, 1, 20, 42])
def test_a_secret_word_is_found_between_whatever_is_around_it(text: str, cut: int | None) -> None:
    word = "Zz0-_" * 8 + "end"
    broken = word if cut is None else f"{word[:cut]}\x1b[1m{word[cut:]}"

    shown = redact(text.format(broken), is_secret_word=lambda found: found == word)

    assert shown == text.format("[REDACTED]")


def test_live_screens_are_withheld_at_the_providers_domains_alone() -> None:
    text = "https://desktop.boxes.example/1 https://viewer.elsewhere.example/2"

    shown = redact(text, provider_domains=["boxes.example"])

    assert shown == "[REDACTED_URL] https://viewer.elsewhere.example/2"


def test_redacting_twice_changes_nothing_more() -> None:
    text = "\n".join([*WITHHELD, *SHOWN])

    assert redact(redact(text)) == redact(text)


# Streams

POLICY = Policy(
    ("known secret", "secret listed"), lambda word: word in {"w" * 43, "w" * 42, "x" * 90 + "abc"}
)
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
    *["known secret", "known", " secret", "secret listed", "listed", "desktop.", "viewer.box.io", "#"],
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


FORMS = re.compile(
    r"\b(?:sk-|smct_)[\w-]{16}|\boa_(?:pat|agent|assignment)_[\w.-]{16}|\bgh[pousr]_[A-Za-z0-9]{16}|\bAKIA[A-Z0-9]{16}"
    r"|(?i:\bbearer\s+[\w.~+/-])|https?://[^\s/?#\"'<>`\\@:]*:[^\s/?#\"'<>`\\@]*@|known secret|w{42}",
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


def test_a_secret_that_goes_on_for_ever_is_withheld_without_being_kept() -> None:
    redactor = Redactor()
    texts = [piece.text for _ in range(50) for piece in redactor.feed(b"sk-" + b"a" * 10_000)]

    assert "".join(texts) == "[REDACTED]"
    assert len(redactor.state.held) == 0


ENDLESS = [
    "sk-",
    "a",
    "http://a",
    "a\r",
    "\x1b[",
    "\x1b",
    "-----BEGIN ",
    "bearer",
    "basic a ",
    "password",
    "?token",
    "\0",
]


@pytest.mark.parametrize("unit", [*ENDLESS, "https://" + "a" * 6_000, "www", "-----BEGIN PRIVATE KEY-----"])
def test_what_is_held_back_stays_small_whatever_comes(unit: str) -> None:
    redactor = Redactor(POLICY)
    largest = 0
    for _ in range(12):
        redactor.feed((unit * (4_000 // len(unit) + 1)).encode())
        largest = max(largest, len(redactor.state.held))

    assert largest < 10_000
    assert len(json.dumps(redactor.state.to_json())) < 20_000


@pytest.mark.parametrize("unit", ENDLESS)
def test_the_work_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    """Counted in calls of Python and C functions, which a quadratic search multiplies."""
    short, long = (_calls(unit, size) for size in (2_000, 16_000))

    assert long < short * 16


def _calls(unit: str, size: int) -> int:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    data = (unit * (size // len(unit))).encode()
    redactor = Redactor(POLICY)
    previous = sys.getprofile()
    sys.setprofile(count)
    try:
        redactor.feed(data)
        redactor.flush()
    finally:
        sys.setprofile(previous)
    return calls


@pytest.mark.parametrize("unit", [*ENDLESS, "s\r\r\r\rk", "https://a:", "password=", "x" * 30 + "\r"])
def test_the_time_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    """Eight times the text takes about eight times as long; a quadratic search would take 64 times."""
    short, long = (min(_seconds(unit, size) for _ in range(3)) for size in (20_000, 160_000))

    assert long < short * 32


def _seconds(unit: str, size: int) -> float:
    data = (unit * (size // len(unit))).encode()
    redactor, started = Redactor(POLICY), time.process_time()
    redactor.feed(data)
    redactor.flush()
    return time.process_time() - started


# Structured data


def test_values_of_keys_that_name_a_secret_are_withheld() -> None:
    data = {
        "apiKey": "x",
        "X-API-Key": "x",
        "sessionToken": 5,
        "Set-Cookie": ["a"],
        "private-key": {"a": 1},
        "user": "me",
    }

    assert redact_mapping(data) == {key: "[REDACTED]" for key in data if key != "user"} | {"user": "me"}


def test_texts_are_redacted_however_nested() -> None:
    data = {"a": [{"b": (f"sk-{LONG}", 1, None)}], "password": None, "token": ""}

    assert redact_mapping(data) == {"a": [{"b": ("[REDACTED]", 1, None)}], "password": None, "token": ""}


def test_listed_values_are_withheld_in_structured_data_too() -> None:
    assert redact_mapping({"note": "it is hunter2"}, secrets=["hunter2"]) == {"note": "it is [REDACTED]"}


def test_data_that_contain_themselves_end() -> None:
    data: dict[str, object] = {"name": "x"}
    data["self"] = data

    assert "[TOO_DEEP]" in json.dumps(redact_mapping(data))


def test_the_original_is_left_alone() -> None:
    data = {"password": "x", "list": ["Bearer abc"]}
    redact_mapping(data)

    assert data == {"password": "x", "list": ["Bearer abc"]}
