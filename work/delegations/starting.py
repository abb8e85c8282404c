"""Starting a delegation. Everything that can be known to be wrong is refused before there is a job."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from accounts.models import User
from base.clock import database_now
from base.text import keep_first_bytes
from conversations.services import conversation_of
from work import limits
from work.channel import asking
from work.channel import limits as channel_limits
from work.delegations.errors import AgentNotAvailable, CwdNotAllowed, DelegationInvalid
from work.delegations.folders import is_inside
from work.errors import JobInvalid, MachineExpired, MachineRevoked
from work.machines import selectors
from work.machines.errors import MachineOffline, MachinesDisabled
from work.machines.presence import agents_of, is_online
from work.machines_conf import machine_settings
from work.models import Job, Machine
from work.services import start_job
from work.states import JobKind, MachineStatus, MachineTier, Surface
from work.validation import Problems

FRAME_OVERHEAD_BYTES = 2_048
_REFUSED_BY_MACHINE = {AgentNotAvailable.code: AgentNotAvailable, CwdNotAllowed.code: CwdNotAllowed}


def start_delegation(
    user: User,
    *,
    machine_id: UUID,
    agent_id: str,
    prompt: str,
    cwd: str,
    timeout_ms: int | None = None,
    goal: str | None = None,
    conversation_id: UUID | None = None,
    surface: str = Surface.TEXT,
    context_hint: str | None = None,
    requesting_tool_step_ref: str | None = None,
) -> Job:
    """Give `prompt` to the agent `agent_id` on a connected machine of the user, to work in `cwd` for at most `timeout_ms` (an
    hour by default); returns the queued job.

    The machine is asked whether it has the agent and whether the folder is really inside its roots, links followed: never
    call this inside a transaction. Refusals, all before a job exists: MachinesDisabled, DelegationInvalid,
    MachineNotFound, ConversationNotFound, MachineRevoked, MachineExpired, MachineOffline, AgentNotAvailable, CwdNotAllowed
    and MachineTimeout.
    """
    _check_enabled()
    timeout_ms = limits.LONGEST_DELEGATION_MS if timeout_ms is None else timeout_ms
    _check_request(agent_id, prompt, cwd, timeout_ms)
    machine = selectors.find_machine(selectors.machines_of(user), machine_id)
    conversation = conversation_of(user, conversation_id)
    check_known(machine, agent_id, prompt, cwd)
    ask_machine(machine, agent_id, cwd)
    agreed = {"agent_id": agent_id, "cwd": cwd, "machine_name": machine.name}
    try:
        return start_job(
            conversation_id=conversation.pk,
            owner_visitor_id=conversation.visitor_id,
            kind=JobKind.DELEGATION,
            surface=surface,
            goal=goal or _goal(agent_id, machine.name, prompt),
            context_hint=context_hint,
            requesting_tool_step_ref=requesting_tool_step_ref,
            machine_id=machine.pk,
            delegation={**agreed, "machine_id": machine.pk, "prompt": prompt, "timeout_ms": timeout_ms},
            authority_snapshot={**agreed, "machine_tier": machine.tier, "roots": machine.roots},
            budget_snapshot={
                "wall_clock_ms": timeout_ms,
                "maximum_prompt_bytes": limits.PROMPT_BYTES,
                "maximum_report_bytes": limits.REPORT_BYTES,
            },
        )
    except JobInvalid as error:
        raise DelegationInvalid(error.fields) from error


def check_known(machine: Machine, agent_id: str, prompt: str, cwd: str) -> None:
    """What can be known of a delegation without asking the machine, whose channel was selected with it. Raises
    MachinesDisabled, MachineRevoked, MachineExpired, MachineOffline, AgentNotAvailable, CwdNotAllowed and
    DelegationInvalid."""
    _check_enabled()
    _check_machine(machine, agent_id, cwd)
    _check_size(machine, prompt)


def ask_machine(machine: Machine, agent_id: str, cwd: str) -> None:
    """Let the machine say whether it has the agent, and whether the folder is really inside its roots. Never inside a
    transaction. Raises MachineOffline, MachineTimeout, AgentNotAvailable and CwdNotAllowed."""
    question = {"agent_id": agent_id, "cwd": cwd, "tier": machine.tier}
    answer = asking.ask(machine, asking.CHECK, question, seconds=channel_limits.CHECK_SECONDS)
    if answer.get("allowed") is True:
        return
    raise _REFUSED_BY_MACHINE.get(str(answer.get("code")), AgentNotAvailable)


def _check_enabled() -> None:
    if not machine_settings().enabled:
        raise MachinesDisabled


def _check_request(agent_id: Any, prompt: Any, cwd: Any, timeout_ms: Any) -> None:
    problems = Problems()
    problems.text("agent_id", agent_id, limits.AGENT_ID_BYTES)
    problems.text("prompt", prompt, limits.PROMPT_BYTES)
    problems.text("cwd", cwd, limits.CWD_BYTES)
    problems.whole("timeout_ms", timeout_ms, limits.LONGEST_DELEGATION_MS)
    if problems.fields:
        raise DelegationInvalid(problems.fields)


def _check_machine(machine: Machine, agent_id: str, cwd: str) -> None:
    now = database_now()
    if machine.status != MachineStatus.ACTIVE:
        raise MachineRevoked
    if machine.token_expires_at <= now:
        raise MachineExpired
    if not is_online(machine, now):
        raise MachineOffline
    if machine.tier == MachineTier.PROBE:
        raise AgentNotAvailable(detail="this machine only says what is there; it runs no agents")
    if agent_id not in {agent["id"] for agent in agents_of(machine)}:
        raise AgentNotAvailable
    if not is_inside(cwd, machine.roots):
        raise CwdNotAllowed


def _check_size(machine: Machine, prompt: str) -> None:
    """A prompt of control characters grows sixfold on the wire."""
    told = json.dumps([prompt, machine.roots], ensure_ascii=False)
    if len(told.encode()) > channel_limits.FRAME_BYTES - FRAME_OVERHEAD_BYTES:
        raise DelegationInvalid({"prompt": ["is too large to be sent to the machine"]})


def _goal(agent_id: str, machine_name: str, prompt: str) -> str:
    return keep_first_bytes(f"Delegate to {agent_id} on {machine_name}: {prompt}", limits.GOAL_BYTES)
