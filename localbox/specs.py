"""What a row asks of the runtime."""

from __future__ import annotations

from dataclasses import replace

from .runtime.interface import BoxSpec
from .settings import Settings
from .sizes import SIZES
from .store.boxes import BoxRow


def spec_of(row: BoxRow, settings: Settings) -> BoxSpec:
    """The box's folder, uid, variables and ceilings: its size's memory, or the server's ceiling if that is lower."""
    memory = min(settings.limits.memory_bytes, SIZES[row.size].memory_gb << 30)
    return BoxSpec(
        box_id=row.id,
        root=settings.boxes_dir / row.id,
        uid=row.uid,
        env=row.env,
        limits=replace(settings.limits, memory_bytes=memory),
        network=settings.network,
    )
