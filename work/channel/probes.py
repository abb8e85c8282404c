"""What a machine found when it looked which agents it has."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from base.clock import database_now
from work import limits as work_limits
from work.channel import limits
from work.channel.fields import Fields
from work.models import Machine


def store_probe(machine_id: UUID, body: Any) -> None:
    """Keep the report `{"agents": [{"id", "name"?}], "system"?}` as the machine's last one. Raises InvalidFrame."""
    fields = Fields(body)
    agents = [_agent(Fields(agent)) for agent in fields.list_of("agents", limits.AGENTS)]
    probe = {"agents": agents, "system": fields.text("system", 200), "at": database_now().isoformat()}
    Machine.objects.filter(pk=machine_id).update(last_probe=probe)


def _agent(fields: Fields) -> dict[str, str]:
    agent_id = fields.exact_text("id", work_limits.AGENT_ID_BYTES)
    return {"id": agent_id, "name": fields.text("name", 80) or agent_id}
