"""Which coding agents are on this computer. Looking runs nothing: a command that is on the path counts as there."""

from __future__ import annotations

import platform
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connector.errors import ConnectorError


@dataclass(frozen=True)
class Agent:
    """A coding agent that speaks the Agent Client Protocol over its standard streams."""

    id: str
    name: str
    command: Sequence[str]


KNOWN = (
    Agent("claude", "Claude Code", ["claude-code-acp"]),
    Agent("codex", "Codex", ["codex-acp"]),
    Agent("gemini", "Gemini CLI", ["gemini", "--experimental-acp"]),
    Agent("goose", "Goose", ["goose", "acp"]),
    Agent("opencode", "OpenCode", ["opencode", "acp"]),
)
LONGEST_ID_BYTES = 64


def installed(named: Mapping[str, Sequence[str]]) -> dict[str, Agent]:
    """The agents that are there, by id: those that the owner named, then those that are known and not named otherwise."""
    candidates = [Agent(agent_id, agent_id, list(command)) for agent_id, command in named.items()]
    candidates += [agent for agent in KNOWN if agent.id not in named]
    return {agent.id: agent for agent in candidates if shutil.which(agent.command[0])}


def probe(named: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What is told of this computer."""
    agents = [{"id": agent.id, "name": agent.name} for agent in installed(named).values()]
    return {"agents": agents, "system": platform_name()}


def platform_name() -> str:
    """`linux-x86_64`, `darwin-arm64`."""
    return f"{platform.system()}-{platform.machine()}".lower()[:40]


def parse_named(texts: Sequence[str]) -> dict[str, list[str]]:
    """`id=command with arguments` as the owner types it. Raises ConnectorError."""
    named: dict[str, list[str]] = {}
    for text in texts:
        agent_id, _, line = text.partition("=")
        try:
            command = shlex.split(line)
        except ValueError as error:
            raise ConnectorError(f"--agent {agent_id}: {error}") from None
        if not agent_id.strip() or len(agent_id.encode()) > LONGEST_ID_BYTES or not command:
            raise ConnectorError(
                "--agent takes an id and a command, as in --agent mine='/usr/bin/agent --acp'"
            )
        named[agent_id.strip()] = command
    return named
