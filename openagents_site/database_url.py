"""What a URL such as DATABASE_URL names, checked before anything connects: each mistake is one sentence, without the password."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import environ
import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import make_conninfo, timeout_from_conninfo

from base import dead_peers

SCHEMES = frozenset({"postgres", "postgresql", "psql", "pgsql"})
FORM = "postgres://user:password@host:5432/name"
KEYWORDS = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
DJANGOS_OWN = frozenset({"assume_role", "isolation_level", "pool", "server_side_binding"})


def database_of(url: str, variable: str = "DATABASE_URL") -> dict[str, Any]:
    """An entry of Django's DATABASES, whose connections notice a server that is gone. Raises ImproperlyConfigured.

    `variable` is where the URL comes from. Nothing that the URL says of user and password is repeated.
    """
    url = url.strip()
    _check_form(url, variable)
    entry = dict(environ.Env.db_url_config(url))
    entry["HOST"] = unquote(entry["HOST"])  # a socket's folder comes percent-encoded
    _take_from_query(entry)
    if not entry["HOST"]:
        raise ImproperlyConfigured(
            f"{variable} names no host: {FORM}, or the folder of a socket, postgres://user@%2Ffolder/name"
        )
    if not entry["NAME"]:
        raise ImproperlyConfigured(f"{variable} names no database: {FORM}")
    _check_options(entry.get("OPTIONS", {}), variable)
    entry["OPTIONS"] = dead_peers.noticed(entry.get("OPTIONS", {}))
    return entry


def connection_parameters(entry: dict[str, Any]) -> dict[str, Any]:
    """Keywords of `psycopg.connect` for an entry of DATABASES."""
    given = {keyword: entry[name] for keyword, name in KEYWORDS.items() if entry.get(name)}
    return {name: value for name, value in entry["OPTIONS"].items() if name not in DJANGOS_OWN} | given


def _take_from_query(entry: dict[str, Any]) -> None:
    """PostgreSQL's own form names any part after the question mark too, and there it wins."""
    options = entry.setdefault("OPTIONS", {})
    for keyword, name in KEYWORDS.items():
        if keyword in options:
            entry[name] = str(options.pop(keyword))


def _check_form(url: str, variable: str) -> None:
    """It is a URL whose scheme and ports are good."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ImproperlyConfigured(f"{variable} is no URL: {FORM}") from None
    if not parts.scheme or "://" not in url:
        raise ImproperlyConfigured(f"{variable} is no URL: {FORM}")
    if parts.scheme not in SCHEMES:
        raise ImproperlyConfigured(
            f"{variable} must name a PostgreSQL database, {FORM}; {parts.scheme}:// is none"
        )
    for host in parts.netloc.rpartition("@")[2].split(","):
        _check_port(host, variable)


def _check_port(host: str, variable: str) -> None:
    """A part of the password that ends up here is not repeated."""
    outside_brackets = host.rpartition("]")[2]
    port = outside_brackets.partition(":")[2]
    if host.count("[") != host.count("]") or ":" in port:
        raise ImproperlyConfigured(f"{variable}: its host is none; an IPv6 address is written in [ ]")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
        raise ImproperlyConfigured(
            f"{variable}: its port must be a number from 1 to 65535 "
            "(in a password, write / as %2F, @ as %40, # as %23, ? as %3F)"
        )


def _check_options(options: dict[str, Any], variable: str) -> None:
    """What stands after the question mark is known to PostgreSQL's client library."""
    asked: dict[str, str | int | None] = {
        name: str(value) for name, value in options.items() if name not in DJANGOS_OWN
    }
    try:
        make_conninfo("", **asked)
        timeout_from_conninfo(asked)
    except psycopg.Error as error:
        raise ImproperlyConfigured(f"{variable}: {str(error).strip()}") from None
