"""For whom a bound counts."""

from __future__ import annotations

import pytest

from base.addresses import counted, is_this_machine, last_named


@pytest.mark.parametrize(
    ("address", "for_whom"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
    ],
)
def test_an_address_is_counted_with_those_that_one_customer_has(address: str, for_whom: str) -> None:
    assert counted(address) == for_whom


@pytest.mark.parametrize("text", ["", "no address", "192.0.2.1, 192.0.2.2", "192.0.2.1:80", "٣.1.1.1"])
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        counted(text)


def test_of_a_list_the_nearest_proxys_word_counts() -> None:
    assert last_named("10.9.9.9, made up, 192.0.2.1") == "192.0.2.1"
    assert (last_named("192.0.2.1"), last_named("")) == ("192.0.2.1", "")


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "localhost", "LOCALHOST.", "a.localhost")),
        *((host, False) for host in ("192.0.2.1", "::ffff:192.0.2.1", "example.com", "localhost.example.com", "", "0.0.0.0")),
    ],
)  # fmt: skip
def test_this_machine_is_known_by_its_loopback_addresses(host: str, is_it: bool) -> None:
    assert is_this_machine(host) == is_it
