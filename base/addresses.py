"""Addresses of clients: as bounds count them, and which of them is this machine."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Network, ip_address

ONE_CUSTOMER_BITS = 64
"""Who has one IPv6 address has all that share so many first bits with it, and could try from each anew."""


def last_named(header: str) -> str:
    """The address that the nearest proxy wrote, where a header lists several: those before it anybody can make up."""
    return header.rpartition(",")[2].strip()


def counted(address: str) -> str:
    """What is counted for this address: itself, an IPv4 address in disguise as that, and an IPv6 one as its network's first.

    Raises ValueError for what is no address.
    """
    found = ip_address(address)
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found), ONE_CUSTOMER_BITS), strict=False).network_address)


def is_this_machine(host: str) -> bool:
    """Whether this address, or `localhost`, is a loopback one. Other names are not looked up."""
    name = host.rstrip(".").lower()
    try:
        found = ip_address(host)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    mapped = None if isinstance(found, IPv4Address) else found.ipv4_mapped
    return (mapped or found).is_loopback
