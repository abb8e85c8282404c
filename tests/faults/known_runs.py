"""Commands whose whole redacted output and end are known before they run. Each leaves a line in a file of its box."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

COUNTER = "$HOME/counter"
TOKEN = "sk-" + "Zk3" * 12  # shaped like a key, and nobody's
STRUCK_OUT = "[REDACTED]"


@dataclass(frozen=True)
class Known:
    """A command under its idempotency key. `is_endless`: it ends only by being cancelled."""

    key: str
    command: str
    output: str
    exit_status: int = 0
    is_endless: bool = False


def known_run(rng: random.Random, key: str) -> Known:
    """One of the kinds, with durations and an exit status drawn from `rng`."""
    kind = rng.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
    body, output, is_endless = kind(rng, key)
    status = 0 if is_endless else rng.choice([0, 0, 0, 1, 3, 200])
    command = f"echo {key} >> {COUNTER}\n{body}\nexit {status}\n"
    return Known(key, command, output, status, is_endless)


_Kind = Callable[[random.Random, str], tuple[str, str, bool]]


def _silent(rng: random.Random, key: str) -> tuple[str, str, bool]:
    return f"sleep {_pause(rng)}", "", False


def _lines(rng: random.Random, key: str) -> tuple[str, str, bool]:
    count, pause = rng.randint(1, 30), _pause(rng) / 10
    body = f'for n in $(seq {count}); do echo "{key}: $n grüße"; sleep {pause:.3f}; done'
    return body, "".join(f"{key}: {n} grüße\n" for n in range(1, count + 1)), False


def _halves(rng: random.Random, key: str) -> tuple[str, str, bool]:
    """A secret and a character, each written in two pieces with time for a look between them."""
    cut, pause = rng.randint(1, len(TOKEN) - 1), _pause(rng)
    body = f"""printf 'key '; printf '%s' '{TOKEN[:cut]}'; sleep {pause}; printf '%s' '{TOKEN[cut:]}'; echo ' of {key}'
printf '\\303'; sleep {pause}; printf '\\251\\n'"""
    return body, f"key {STRUCK_OUT} of {key}\né\n", False


def _much(rng: random.Random, key: str) -> tuple[str, str, bool]:
    """More than a poll brings at once."""
    count = rng.randint(20_000, 60_000)
    return f"seq -f '%.0f of {key}' {count}", "".join(f"{n} of {key}\n" for n in range(1, count + 1)), False


def _endless(rng: random.Random, key: str) -> tuple[str, str, bool]:
    return "echo begun; trap '' TERM; sleep 900 & sleep 900; sleep 900", "begun\n", True


def _pause(rng: random.Random) -> float:
    return round(rng.uniform(0.05, 2.5), 2)


_KINDS: dict[_Kind, int] = {_silent: 2, _lines: 4, _halves: 3, _much: 2, _endless: 1}
