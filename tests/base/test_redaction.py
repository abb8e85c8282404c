"""What is withheld of a complete text, and what stays."""

from __future__ import annotations

import re

import pytest

from base.redaction import redact
from base.redaction.rules import MOST_KEY_BLOCK, TOKENS
from tests.base.withheld import KEY, LONG

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
    r"C:\task-queue-of-the-whole-house 100%task-queue-of-the-whole-house",
    "highs_and_lows_of_the_whole_summer [y/n] 50% arr[12] done",
    "日本🙂é",
]


ESCAPES = [
    *[r"\n", r"\t", r"\r", r"\\n", r"\0", r"\033[0m", r"\e[1;38;5;208m", r"\x1b[K", "^[[32m", "[0m"],
    *[r"\x22", r"\u0022", r"\u003D", "%3D", "%0a", "%2520%20"],
]

ESCAPED = {
    r'{"text": "Authorization: \nBearer abc.def"}': r'{"text": "Authorization: \n[REDACTED]"}',
    r'{"out": "{\"password\": \"correct horse\"}"}': r'{"out": "{\"password\": \"[REDACTED]"}"}',
    r"{\"api_key\":\"hunter22\"}": r'{\"api_key\":\"[REDACTED]"}',
    r"x\\\"db_password\\\" = \\\"hunter22\\\"": r"x\\\"db_password\\\" = \\\"[REDACTED]" + '"',
    r"https:\/\/user:pa55@host.example\/path x": "[REDACTED_URL] x",
    r"https://host/cb?a=1\u0026access_token=abc x": "[REDACTED_URL] x",
}


@pytest.mark.parametrize("text", ESCAPED)
def test_what_was_escaped_is_withheld_too(text: str) -> None:
    assert redact(text) == ESCAPED[text]


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
    for escape in ESCAPES:
        assert redact(f"x{escape}{shortest}") == f"x{escape}[REDACTED]"


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


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "x:{}@host",
        "bar\r{}",
        "{}\rmore",
        "\x1b[32m{}\x1b[0m",
        "={}\n",
        *["x" + escape + "{}" for escape in ESCAPES],
    ],
)
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
