"""Which addresses a webhook may reach."""

from __future__ import annotations

import asyncio
import ipaddress

import pytest

from localbox.webhooks.targets import RefusedTargetError, Target, is_public, parse, resolve


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/hook?a=b",
        "https://example.com:443/",
        "https://1.1.1.1/",
        "https://[2606:4700::1]/",
    ],
)
def test_a_public_https_address_is_accepted(url: str) -> None:
    assert parse(url, loopback=False).secure


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://example.com:8443/",
        "ftp://example.com/",
        "https://",
        "https:///path",
        "example.com",
        "",
        "https://user:secret@example.com/",
        "https://example.com/#part",
        "https://exa mple.com/",
        "https://example.com/\n",
        "https://exämple.com/",
        "https://example.com:port/",
        "https://[::1/",
        "https://localhost/",
        "https://localhost./",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://10.1.2.3/",
        "https://192.168.1.1/",
        "https://172.16.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://" + "a" * 2_000 + ".com/",
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(RefusedTargetError):
        parse(url, loopback=False)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "169.254.1.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "0.0.0.0"),
        *(
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ),
    ],
)
def test_an_address_that_is_not_public_is_known_however_it_is_wrapped(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1", "64:ff9b::101:101", "::ffff:1.1.1.1"])
def test_a_public_address_is_known_too(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_a_name_that_leads_to_this_machine_is_refused_when_it_is_looked_up() -> None:
    target = Target(secure=True, host="localhost", port=443, path="/")

    with pytest.raises(RefusedTargetError, match="not a public address"):
        asyncio.run(resolve(target, loopback=False))


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1"])
def test_a_number_that_is_an_address_is_looked_through(host: str) -> None:
    target = parse(f"https://{host}/", loopback=False)

    with pytest.raises(RefusedTargetError):
        asyncio.run(resolve(target, loopback=False))


def test_the_operator_may_allow_this_machine_and_nothing_else() -> None:
    assert parse("http://127.0.0.1:8000/hook", loopback=True).port == 8000
    for url in ("http://10.0.0.1/", "http://example.com/", "https://example.com:444/"):
        with pytest.raises(RefusedTargetError):
            parse(url, loopback=True)
