"""Money, time and numbers of things as pages and commands show them to people."""

from __future__ import annotations

MICROUSD = 1_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def dollars(microusd: int) -> str:
    """Micro-US-dollars with as many digits as the sum needs: `$1.20`, `$0.0008`."""
    whole, part = divmod(abs(microusd), MICROUSD)
    digits = f"{part:06d}"
    digits = digits[:2] if whole or part >= MICROUSD // 100 else digits.rstrip("0").ljust(2, "0")
    return f"{'-' if microusd < 0 else ''}${whole:,}.{digits}"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 box`, `2 boxes`, `1,000 runs`: without `many` an s makes more of it."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """Seconds in the two largest units that tell something: `45 s`, `12 min`, `3 h 05 min`, `2 d 4 h`."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"
