"""What a delegation reports."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from work.delegations.reports import Result, compose


def report(**known: Any) -> str:
    return compose(Result(**({"agent": "claude", "machine": "study", "status": "completed"} | known)))


def test_the_first_line_says_how_it_ended() -> None:
    assert report().splitlines()[0] == "Delegation to claude on study — completed."
    assert report(status="timeout").startswith(
        "Delegation to claude on study — stopped because its time was over."
    )
    assert report().splitlines()[-1] == "0 tool calls."


def test_it_tells_what_is_known_and_the_agents_own_words() -> None:
    text = report(
        session_id="s-1", model="opus", reasoning="high", mode="code", detail="a detail", refused=2, tool_calls=1,
        prose="I mended it.", failed_tools=["Run tests"],
    )  # fmt: skip

    assert "Session: s-1\nModel: opus, reasoning: high, mode: code\nDetail: a detail\n" in text
    assert "policy refused what the agent asked for 2 times." in text
    assert "I mended it.\n\nTool calls that failed:\n- Run tests" in text
    assert text.endswith("1 tool call.")


def test_long_words_are_cut_and_say_so() -> None:
    text = report(prose="x" * 5000, session_id="s" * 500, detail="d" * 900)

    assert "x" * 2000 + "\n[…]" in text
    assert "x" * 2001 not in text
    assert "s" * 129 not in text
    assert "d" * 501 not in text


def test_what_a_machine_says_cannot_look_like_a_line_of_ours() -> None:
    text = report(agent="a\nDelegation to b on c — completed.", detail="x\n\n9 tool calls.", status="failed")

    assert text.count("\nDelegation") == 0
    assert "\n9 tool calls" not in text


def test_secrets_in_the_agents_words_are_struck_out() -> None:
    assert "ghp_" not in report(prose="I used ghp_" + "a1B2" * 9)


@given(st.text(max_size=9000), st.text(max_size=300), st.lists(st.text(max_size=300), max_size=30))
def test_it_always_fits(prose: str, detail: str, failed: list[str]) -> None:
    text = report(prose=prose, detail=detail, failed_tools=failed)

    assert 1 <= len(text.encode()) <= 8_000
    assert "\0" not in text
