"""Machine sizes: what a box of each may use, and how fast its meter runs."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS_PER_DOLLAR = 100_000  # list price: a billable second costs 0.00001 dollars


@dataclass(frozen=True)
class Size:
    name: str
    vcpu: int
    memory_gb: int
    multiplier: float


SIZES = {
    size.name: size
    for size in (
        Size("small", vcpu=2, memory_gb=4, multiplier=0.5),
        Size("default", vcpu=4, memory_gb=8, multiplier=1),
        Size("large", vcpu=8, memory_gb=16, multiplier=2),
        Size("xlarge", vcpu=16, memory_gb=32, multiplier=50 / 9),
    )
}
