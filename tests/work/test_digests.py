"""Digests and reports, which need no database."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from work import digests, reports
from work.reports import Ending
from work.states import TERMINAL, JobKind

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_a_digest_is_that_of_sorted_json_without_white_space() -> None:
    expected = hashlib.sha256('{"a":[1,"é"],"b":null}'.encode()).hexdigest()

    assert digests.digest({"b": None, "a": [1, "é"]}) == expected
    assert digests.argument_digest(' {"b": null,\n "a": [1, "\\u00e9"]} ') == expected


@given(plain_json)
def test_how_it_is_written_does_not_count(value: Any) -> None:
    written = json.dumps(value, indent=3)

    assert digests.argument_digest(written) == digests.digest(json.loads(written))


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": Infinity}', "[" * 100_000, "\ud800", "{'a': 1}"])
def test_what_is_no_json_is_digested_by_its_text(text: str) -> None:
    raw = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    assert digests.argument_digest(text) == digests.digest({"raw_sha256": raw})


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_is_no_json_has_no_digest(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON|compliant"):
        digests.digest(value)


texts = st.text(max_size=40) | st.builds(
    lambda unit, times: unit * times, st.text(min_size=1, max_size=4), st.integers(0, 8_001)
)
endings = st.builds(
    Ending,
    kind=st.sampled_from(JobKind.values),
    status=st.sampled_from([status.value for status in TERMINAL]),
    goal=texts,
    error_code=st.none() | st.text(max_size=40),
    text=texts,
    final_text=st.none() | texts,
    agent=st.text(max_size=20),
    machine=st.text(max_size=20),
    steps=st.lists(st.tuples(texts, st.sampled_from(["succeeded", "failed"])), max_size=4),
)


@given(endings)
def test_a_report_is_never_empty_never_too_long_and_always_storable(ending: Ending) -> None:
    report = reports.compose(ending)

    assert report.strip()
    assert len(report.encode()) <= 8_000
    assert "\0" not in report


@given(endings)
def test_only_a_success_or_a_last_word_stands_without_saying_how_it_ended(ending: Ending) -> None:
    report = reports.compose(ending)

    has_word = bool((ending.final_text or "").replace("\0", "␀").strip())
    if not has_word and ending.status != "completed":
        assert report.startswith(reports.status_line(ending)[:1_000])
