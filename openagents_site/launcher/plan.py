"""What one start of the installation consists of, decided before anything runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ

from base import state_root
from base.embedded_postgres.connection import connection_to
from openagents_site.database_url import connection_parameters, database_of

from . import ports, procfile
from .parts import PROVIDER

CHECKOUT = Path(__file__).resolve().parents[2]
WEB_PORT = 8000
PROVIDER_PORT = 4600
# All that the provider is given: it runs other people's programs and needs none of our secrets.
PROVIDER_VARIABLES = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "PYTHONUNBUFFERED"}
)
PROVIDER_PREFIXES = ("LC_", "LOCALBOX_")


class PlanError(Exception):
    """Settings that contradict each other, in one sentence."""


@dataclass(frozen=True)
class Plan:
    """Ports, addresses and the environment of every process."""

    state: state_root.StateRoot
    web: ports.Reserved
    provider: ports.Reserved | None  # None: the boxes come from a provider elsewhere
    environment: Mapping[str, str]

    @property
    def web_port(self) -> int:
        return self.web.port

    @property
    def provider_port(self) -> int | None:
        return None if self.provider is None else self.provider.port

    @property
    def url(self) -> str:
        """Where the web server listens."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def public_url(self) -> str:
        """Where users reach the site, which is at a proxy's if PUBLIC_BASE_URL says so."""
        return self.environment["PUBLIC_BASE_URL"].rstrip("/")

    @property
    def embedded_database(self) -> bool:
        return not self.environment.get("DATABASE_URL")

    def entries(self) -> list[procfile.Entry]:
        """The processes to run. Raises ProcfileError."""
        entries = procfile.read(CHECKOUT / "Procfile")
        return [entry for entry in entries if entry.name != PROVIDER or self.provider_port is not None]

    def environment_of(self, name: str) -> dict[str, str]:
        """The environment of one process."""
        if name == PROVIDER:
            return provider_environment(self.environment, self.state, self.provider_port)
        own = {k: v for k, v in self.environment.items() if not k.startswith("LOCALBOX_")}
        return {**own, "PROCESS_ROLE": name}

    def database_parameters(self) -> dict[str, Any]:
        """Keywords of `psycopg.connect`. Raises ImproperlyConfigured."""
        url = self.environment.get("DATABASE_URL")
        return (
            connection_parameters(database_of(url))
            if url
            else connection_to(self.state.postgres).parameters()
        )


def load_env_file() -> None:
    """Take what `.env` says, where the environment does not say otherwise."""
    if (CHECKOUT / ".env").is_file():
        environ.Env.read_env(CHECKOUT / ".env")


def make(state: state_root.StateRoot, web_port: str | None) -> Plan:
    """The plan for this environment. Raises PlanError and PortTaken.

    `web_port` is the one given on the command line. Records where the site and the
    embedded provider will listen.
    """
    environment = dict(os.environ)
    embedded_provider = not _has_own_provider(environment)
    web = ports.choose(web_port or environment.get("WEB_PORT"), WEB_PORT, "site", "--port or WEB_PORT")
    provider = _provider_port(environment) if embedded_provider else None
    address = f"127.0.0.1:{web.port}"
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "WEB_BIND": address,
        "PUBLIC_BASE_URL": environment.get("PUBLIC_BASE_URL") or f"http://{address}",
        "PYTHONUNBUFFERED": "1",
    }
    state_root.record_site_url(environment["PUBLIC_BASE_URL"], state.path)
    if provider is not None:
        url = f"http://127.0.0.1:{provider.port}/api/box/v1"
        state_root.record_provider_url(url, state.path)
        key = state_root.private_secret("provider_key", state.path)
        environment |= {"BOX_API_BASE_URL": url, "BOX_API_KEY": key}
    return Plan(state, web, provider, environment)


def boxes_reach(url: str, environment: Mapping[str, str]) -> bool:
    """Whether a box can reach the site at `url`: one that is elsewhere does not reach this machine's own addresses."""
    is_here = urlsplit(url).hostname in {"127.0.0.1", "::1", "localhost"}
    return not (is_here and _has_own_provider(environment))


def provider_environment(
    environment: Mapping[str, str], state: state_root.StateRoot, port: int | None
) -> dict[str, str]:
    """The environment of the embedded provider; its key travels in no other way."""
    passed = {
        k: v for k, v in environment.items() if k in PROVIDER_VARIABLES or k.startswith(PROVIDER_PREFIXES)
    }
    key = state_root.private_secret("provider_key", state.path)
    return passed | {"LOCALBOX_PORT": str(port), "LOCALBOX_STATE_DIR": str(state.boxes), "LOCALBOX_KEY": key}


def _provider_port(environment: Mapping[str, str]) -> ports.Reserved:
    return ports.choose(environment.get("LOCALBOX_PORT"), PROVIDER_PORT, "box provider", "LOCALBOX_PORT")


def _has_own_provider(environment: Mapping[str, str]) -> bool:
    """Whether the settings name a provider of boxes. Raises PlanError if they do so by half."""
    named = [name for name in ("BOX_API_KEY", "BOX_API_BASE_URL") if environment.get(name)]
    if len(named) == 1:
        other = ({"BOX_API_KEY", "BOX_API_BASE_URL"} - set(named)).pop()
        raise PlanError(
            f"{named[0]} is set and {other} is not: set both for a provider of your own, or neither"
        )
    return bool(named)
