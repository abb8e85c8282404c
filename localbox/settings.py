"""Settings of one provider process: `LOCALBOX_*` in the environment, or flags, which win.

The bearer key is never a flag: a process list is public.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, get_args

from .runtime.interface import Limits

Sandbox = Literal["auto", "bwrap", "plain"]
LogLevel = Literal["debug", "info", "warning", "error"]

T = TypeVar("T")

MINIMUM_KEY_LENGTH = 16
DEFAULT_STATE_DIR = "~/.local/state/localbox"
ROOT_STATE_DIR = "/var/lib/localbox"  # boxes have uids of their own then, which may not look into root's home
DAY = 86_400


class SettingsError(Exception):
    """A setting is missing or makes no sense. The text is one sentence for the person who starts the server."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen. Times in seconds, sizes in bytes; None means no limit where it is allowed."""

    state_dir: Path
    key: str | None = field(default=None, repr=False)  # None: kept in, or made into, the state folder
    host: str = "127.0.0.1"
    port: int = 4600  # 0: any free one
    sandbox: Sandbox = "auto"
    network: bool = True
    max_active_boxes: int = 100
    starts_per_minute: int | None = None
    starts_per_hour: int | None = None
    starts_per_day: int | None = None
    prune_after_seconds: int = 7 * DAY  # how long the files of an archived box are kept
    max_body_bytes: int = 32 << 20  # of a file written or read as JSON; every other body may have 1 MiB
    loopback_webhooks: bool = False
    webhook_backoff_seconds: float = (
        5.0  # after the first failed delivery; four times as long after each further one
    )
    latency_ms: int = 0  # added to every answer, for measuring clients
    log_level: LogLevel = "info"
    limits: Limits = field(default_factory=Limits)

    @property
    def boxes_dir(self) -> Path:
        return self.state_dir / "boxes"

    @property
    def scratch_dir(self) -> Path:
        return self.state_dir / "scratch"

    @property
    def private_dir(self) -> Path:
        return self.state_dir / "private"


FLAGS: dict[str, str] = {
    "host": "address to listen on (default 127.0.0.1)",
    "port": "port to listen on (default 4600; 0 takes a free one)",
    "state_dir": f"folder for the boxes and the provider's own records (default {DEFAULT_STATE_DIR}, as root {ROOT_STATE_DIR})",
    "sandbox": "auto, bwrap or plain (default auto)",
    "latency_ms": "milliseconds added to every answer (default 0)",
    "log_level": "debug, info, warning or error (default info)",
    "max_active_boxes": "boxes that may be up at once (default 100)",
}


def load(
    environ: Mapping[str, str], flags: Mapping[str, str | None], *, key_env: str = "LOCALBOX_KEY"
) -> Settings:
    """Settings from the environment and the flags given. Raises SettingsError."""
    given = {
        name: environ[f"LOCALBOX_{name.upper()}"]
        for name in _NAMES
        if environ.get(f"LOCALBOX_{name.upper()}")
    }
    given |= {name: value for name, value in flags.items() if value is not None}
    read = _Reader(given)
    return Settings(
        state_dir=Path(given.get("state_dir") or _default_state_dir()).expanduser().absolute(),
        key=_key(environ, key_env),
        host=given.get("host", "127.0.0.1"),
        port=read.integer("port", 4600, low=0, high=65_535),
        sandbox=read.choice("sandbox", get_args(Sandbox), "auto"),
        network=read.flag("network", default=True),
        max_active_boxes=read.integer("max_active_boxes", 100, low=0),
        starts_per_minute=read.optional("starts_per_minute"),
        starts_per_hour=read.optional("starts_per_hour"),
        starts_per_day=read.optional("starts_per_day"),
        prune_after_seconds=read.integer("prune_after_seconds", 7 * DAY, low=0),
        max_body_bytes=read.integer("max_body_bytes", 32 << 20, low=1 << 20),
        loopback_webhooks=read.flag("loopback_webhooks", default=False),
        webhook_backoff_seconds=read.number("webhook_backoff_seconds", 5.0),
        latency_ms=read.integer("latency_ms", 0, low=0),
        log_level=read.choice("log_level", get_args(LogLevel), "info"),
        limits=_limits(read),
    )


_LIMITS = ("processes", "memory_bytes", "file_bytes", "tmp_bytes", "output_bytes", "log_bytes")
_NAMES = (
    *(
        "host",
        "port",
        "state_dir",
        "sandbox",
        "network",
        "max_active_boxes",
        "starts_per_minute",
        "starts_per_hour",
    ),
    *(
        "starts_per_day",
        "prune_after_seconds",
        "max_body_bytes",
        "loopback_webhooks",
        "webhook_backoff_seconds",
    ),
    *("latency_ms", "log_level"),
    *(f"box_{name}" for name in _LIMITS),
)


def _default_state_dir() -> str:
    return ROOT_STATE_DIR if os.geteuid() == 0 else DEFAULT_STATE_DIR


def _key(environ: Mapping[str, str], key_env: str) -> str | None:
    key = environ.get(key_env)
    if not key:
        return None
    if len(key) < MINIMUM_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(
            f"{key_env} must be at least {MINIMUM_KEY_LENGTH} printable ASCII characters, no blanks."
        )
    return key


def _limits(read: _Reader) -> Limits:
    default = Limits()
    chosen = {name: read.integer(f"box_{name}", getattr(default, name), low=1) for name in _LIMITS}
    return Limits(**chosen)


@dataclass(frozen=True)
class _Reader:
    given: Mapping[str, str]

    def integer(self, name: str, default: int, *, low: int, high: int = (1 << 62)) -> int:
        text = self.given.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            upper = "" if high == 1 << 62 else f" to {high}"
            raise SettingsError(f"{_label(name)} must be a whole number from {low}{upper}, not {text!r}.")
        return int(text)

    def optional(self, name: str) -> int | None:
        return self.integer(name, 0, low=1) if name in self.given else None

    def number(self, name: str, default: float) -> float:
        text = self.given.get(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise SettingsError(f"{_label(name)} must be a number of seconds, not {text!r}.")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.given.get(name)
        if text is None:
            return default
        if text.lower() not in _BOOLEANS:
            raise SettingsError(f"{_label(name)} must be 1 or 0, not {text!r}.")
        return _BOOLEANS[text.lower()]

    def choice(self, name: str, choices: tuple[T, ...], default: T) -> T:
        text = self.given.get(name, default)
        for choice in choices:
            if choice == text:
                return choice
        raise SettingsError(f"{_label(name)} must be one of {', '.join(map(str, choices))}, not {text!r}.")


_BOOLEANS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def _label(name: str) -> str:
    return f"LOCALBOX_{name.upper()}"


def take_from_environment(flags: Mapping[str, str | None], *, key_env: str) -> Settings:
    """`load` from this process's environment; the key is then taken out of it, so that no child inherits it."""
    settings = load(os.environ, flags, key_env=key_env)
    os.environ.pop(key_env, None)
    return settings
