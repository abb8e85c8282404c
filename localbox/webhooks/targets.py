"""Where a webhook may point: a public HTTPS address on port 443, or this machine if the operator allows that.

The URL is checked when it is registered. Its name is looked up anew for every delivery, every address it has is
checked, and the connection goes to the address that was checked: a name that changes its mind gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

_MAXIMUM_URL = 2_000
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class RefusedTargetError(Exception):
    """This URL, or the address behind it, is not one to send to. The text says why."""


@dataclass(frozen=True)
class Target:
    secure: bool
    host: str
    port: int
    path: str  # with its query

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def parse(url: str, *, loopback: bool) -> Target:
    """The parts of a URL. `loopback` also allows http, other ports and this machine. Raises RefusedTargetError."""
    target = _split(url)
    literal = _literal(target.host)
    here = target.host == "localhost" or (literal is not None and literal.is_loopback)
    if here and loopback:
        return target
    if not target.secure or target.port != 443:
        raise RefusedTargetError("A webhook URL must be https on port 443.")
    if here or (literal is not None and not is_public(literal)):
        raise RefusedTargetError("A webhook URL must point to a public address.")
    return target


def _split(url: str) -> Target:
    if len(url) > _MAXIMUM_URL or not all("!" <= character <= "~" for character in url):
        raise RefusedTargetError(f"A webhook URL is at most {_MAXIMUM_URL} ASCII characters without blanks.")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise RefusedTargetError("This is not a URL.") from None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.fragment:
        raise RefusedTargetError(
            "A webhook URL is https://host/path, without a user name and without a fragment."
        )
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(secure=secure, host=host, port=port or (443 if secure else 80), path=path)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether an address belongs to the open internet, also when it wraps another address."""
    inner = _wrapped(address)
    if inner is not None:
        return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


def _wrapped(address: Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


async def resolve(target: Target, *, loopback: bool) -> str:
    """An address of the target, checked. Raises RefusedTargetError, or OSError when the name is not known."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(entry[4][0]) for entry in found]
    for address in addresses:
        if not is_public(address) and not (loopback and address.is_loopback):
            raise RefusedTargetError(f"{target.host} is at {address}, which is not a public address.")
    return str(addresses[0])
