"""What a job's model may call. An app adds a tool at start:

    from base import hooks
    from work.tools import Tool

    hooks.tools.register(lambda: Tool(name="look_up", version="1", ...))

The callable gives one tool or several. They are collected when the first is asked for; `REGISTRY[name]` is the tool.
"""

from __future__ import annotations

from work.tools.registry import REGISTRY, Registry
from work.tools.types import (
    Authority,
    Invocation,
    Tool,
    ToolFailed,
    ToolRefused,
    ToolResult,
    ToolUnavailable,
)

__all__ = [
    "REGISTRY",
    "Authority",
    "Invocation",
    "Registry",
    "Tool",
    "ToolFailed",
    "ToolRefused",
    "ToolResult",
    "ToolUnavailable",
]
