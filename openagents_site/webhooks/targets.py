"""Where a webhook may go. A name is judged when it is used, by the addresses that it then has: see `posting`."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from openagents_site.webhooks.conf import WebhookSettings, webhook_settings
from openagents_site.webhooks.errors import InvalidTarget
from openagents_site.webhooks.models.subscription import LONGEST_URL

_PRINTABLE = re.compile(r"[!-~]+", re.ASCII)
_NAME = re.compile(r"(?=.{1,253}\.?$)[^.]{1,63}(\.[^.]{1,63})*\.?")
_ODD = set('"<>\\^`{|}')
_V4_INSIDE = ((IPv6Network("64:ff9b::/96"), 0), (IPv6Network("2002::/16"), 80))
"""Networks whose addresses hold an IPv4 address (NAT64, 6to4), and how many bits stand behind it."""

_GLOBAL_UNICAST = IPv6Network("2000::/3")


def checked_url(text: str) -> str:
    """The address, if a webhook may go there by its looks. Raises InvalidTarget, and says why."""
    conf = webhook_settings()
    if len(text) > LONGEST_URL or not _PRINTABLE.fullmatch(text) or _ODD & set(text):
        raise InvalidTarget(detail=f"an address is up to {LONGEST_URL} printable ASCII characters, encoded")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidTarget(detail="this is not an address") from None
    if parts.scheme not in ({"https", "http"} if conf.allow_http else {"https"}):
        raise InvalidTarget(detail="the address must begin with https://")
    if not host or port == 0 or not (":" in host or _NAME.fullmatch(host)):
        raise InvalidTarget(detail="the address names no host, or a port that is none")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidTarget(detail="the address must hold no user, no password and no fragment")
    _check_host(host, conf)
    return text


def _check_host(host: str, conf: WebhookSettings) -> None:
    """An address written as such, and names that mean this machine, are refused at once."""
    local = host.rstrip(".").lower()
    if conf.allow_private:
        return
    if local == "localhost" or local.endswith(".localhost"):
        raise InvalidTarget(detail="webhooks do not go to this machine")
    try:
        literal = str(ip_address(host))
    except ValueError:
        return
    if not is_public(literal):
        raise InvalidTarget(detail="webhooks do not go to private addresses")


def permitted(address: str) -> bool:
    """Whether a delivery may be sent to this address, now."""
    return webhook_settings().allow_private or is_public(address)


def is_public(address: str) -> bool:
    """Whether everybody can reach this address: neither private, loopback, link-local nor shared, nor any of them in disguise."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return _is_public_v4(found)
    inside = found.ipv4_mapped or _embedded(found)
    if inside is not None:
        return _is_public_v4(inside)
    return found in _GLOBAL_UNICAST and found.is_global and not found.is_multicast


def _embedded(found: IPv6Address) -> IPv4Address | None:
    for network, behind in _V4_INSIDE:
        if found in network:
            return IPv4Address((int(found) >> behind) & 0xFFFFFFFF)
    return None


def _is_public_v4(found: IPv4Address) -> bool:
    return found.is_global and not found.is_multicast and not found.is_reserved
