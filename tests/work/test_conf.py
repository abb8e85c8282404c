"""Settings of jobs, prices, and what `manage.py check` says of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from work.checks import model_settings
from work.prices import FREE, Price, PricesInvalid, cost_microusd, parsed, price_of


def found(settings: Any, **values: Any) -> list[str | None]:
    settings.WORK = values
    return [message.id for message in model_settings(None)]


def test_a_fresh_installation_is_right(settings: Any) -> None:
    assert found(settings) == []


def test_a_model_needs_a_key_or_a_server(settings: Any) -> None:
    assert found(settings, model="gpt-x") == ["work.E001"]
    assert found(settings, model="gpt-x", model_api_key="k") == []
    assert found(settings, model="qwen", model_base_url="http://127.0.0.1:11434/v1") == []


def test_an_address_is_http(settings: Any) -> None:
    assert found(settings, model="m", model_base_url="127.0.0.1:4010") == ["work.E002"]


def test_a_key_without_a_model_is_a_mistake_and_echo_beside_a_key_a_choice(settings: Any) -> None:
    assert found(settings, model_api_key="k") == ["work.W001"]
    assert found(settings, model="echo", model_api_key="k") == []


@pytest.mark.parametrize(
    "entry", ["gpt", "gpt=1", "gpt=1:2", "gpt=1:2:x", "=1:2:3", "gpt=1:2:-3", "gpt=1:2:nan"]
)
def test_a_price_that_is_none_is_named(settings: Any, entry: str) -> None:
    assert found(settings, model_prices=(entry,)) == ["work.E003"]
    with pytest.raises(PricesInvalid, match="US dollars for a million tokens"):
        parsed([entry])


def test_prices_are_by_model() -> None:
    entries = ("gpt-x=1.25:0.125:10", "org/model=a=0:0:0.5")
    assert price_of("gpt-x", entries) == Price(1.25, 0.125, 10)
    assert price_of("org/model=a", entries) == Price(0, 0, 0.5)
    assert price_of("other", entries) is None
    assert price_of("echo", entries) == FREE


def test_dollars_for_a_million_are_microdollars_for_one() -> None:
    usage = {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 100}
    assert cost_microusd(usage, Price(1.25, 0.125, 10)) == 600 * 1.25 + 400 * 0.125 + 100 * 10
    assert cost_microusd({"input_tokens": 1}, Price(0.1, 0, 0)) == 1


@given(st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "input_tokens_details"]), st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.dictionaries(st.just("cached_tokens"), st.integers() | st.text(max_size=2))))  # fmt: skip
def test_whatever_a_server_counts_the_cost_is_a_number(usage: dict[str, Any]) -> None:
    assert cost_microusd(usage, Price(1, 0.5, 2)) >= 0
