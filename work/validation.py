"""What makes a job acceptable, said before the database says it. Pure but for the rows it is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from accounts.scopes import Scope
from work import limits
from work.conf import work_settings
from work.errors import JobInvalid
from work.models import Machine
from work.prices import price_of
from work.states import JobKind, MachineTier, Surface

LARGEST_BUDGET = 2**53
_AGREE = ("agent_id", "cwd", "machine_name")


class Problems:
    """What is wrong, by field."""

    def __init__(self) -> None:
        self.fields: dict[str, list[str]] = {}

    def add(self, field: str, text: str) -> None:
        self.fields.setdefault(field, []).append(text)

    def text(self, field: str, value: Any, most: int, *, least: int = 1) -> None:
        """The value is a text of `least` to `most` bytes that can be stored."""
        if not isinstance(value, str) or "\0" in value:
            return self.add(field, "must be text without NUL")
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            return self.add(field, "must be valid text")
        if not least <= size <= most or (least and not value.strip()):
            self.add(field, f"must have {least} to {most:,} bytes and not be blank")
        return None

    def whole(self, field: str, value: Any, most: int, *, least: int = 1) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.add(field, f"must be a whole number from {least:,} to {most:,}")

    def one_of(self, field: str, value: Any, choices: list[str]) -> None:
        if value not in choices:
            self.add(field, f"must be one of {', '.join(choices)}")

    def raise_any(self) -> None:
        """Raises JobInvalid if anything is wrong."""
        if self.fields:
            raise JobInvalid(self.fields)


def check_job(job: Mapping[str, Any]) -> None:
    """Raises JobInvalid for a job that the ledger would not take, whatever its owner and machine."""
    problems = Problems()
    problems.one_of("kind", job["kind"], JobKind.values)
    problems.one_of("surface", job["surface"], Surface.values)
    problems.text("goal", job["goal"], limits.GOAL_BYTES)
    for name, most in (
        ("context_hint", limits.CONTEXT_HINT_BYTES),
        ("requesting_tool_step_ref", limits.STEP_REF_BYTES),
    ):
        if job[name] is not None:
            problems.text(name, job[name], most, least=0)
    for name in ("token_budget", "cost_budget_microusd"):
        if job[name] is not None:
            problems.whole(name, job[name], LARGEST_BUDGET)
    if job["kind"] == JobKind.DELEGATION:
        _check_delegation(job, problems)
    else:
        for name in ("machine_id", "delegation", "budget_snapshot"):
            if job[name] is not None:
                problems.add(name, "is only for delegations")
        _check_scopes(job["authority_snapshot"], problems)
        _check_price(job["cost_budget_microusd"], problems)
    problems.raise_any()


def check_authority(snapshot: Mapping[str, Any], machine: Machine) -> None:
    """Raises JobInvalid unless the snapshot says what the machine allows now."""
    says = (snapshot.get("machine_tier"), snapshot.get("roots"), snapshot.get("machine_name"))
    if says != (machine.tier, machine.roots, machine.name):
        raise JobInvalid({"authority_snapshot": ["must be what the machine allows"]})


def _check_scopes(snapshot: Any, problems: Problems) -> None:
    """The authority of deep work is a map with `scopes`; none at all is everything that the owner may do."""
    if snapshot is None:
        return
    scopes = snapshot.get("scopes") if isinstance(snapshot, Mapping) else None
    if not isinstance(scopes, list) or not set(map(str, scopes)) <= set(Scope.values) or len(snapshot) != 1:
        problems.add("authority_snapshot", "must be a map with a list of known `scopes`")


def _check_price(cost_budget: Any, problems: Problems) -> None:
    """Money can only be counted where the model has a price."""
    conf = work_settings()
    if cost_budget is not None and price_of(conf.model, conf.model_prices) is None:
        problems.add("cost_budget_microusd", f"no price is set for the model {conf.model[:100]}")


def _check_delegation(job: Mapping[str, Any], problems: Problems) -> None:
    maps = {name: job[name] for name in ("delegation", "authority_snapshot", "budget_snapshot")}
    for name, value in maps.items():
        if not isinstance(value, Mapping):
            problems.add(name, "must be a map")
    if job["machine_id"] is None:
        problems.add("machine_id", "is required for a delegation")
    if problems.fields:
        return
    delegation, authority, budget = maps["delegation"], maps["authority_snapshot"], maps["budget_snapshot"]
    _check_size("delegation", delegation, limits.DELEGATION_BYTES, problems)
    _check_size("authority_snapshot", authority, limits.AUTHORITY_BYTES, problems)
    _check_size("budget_snapshot", budget, limits.BUDGET_BYTES, problems)
    _check_snapshots(authority, budget, problems)
    prompt_bytes = budget.get("maximum_prompt_bytes")
    most = prompt_bytes if isinstance(prompt_bytes, int) else limits.PROMPT_BYTES
    problems.text("delegation.prompt", delegation.get("prompt"), min(most, limits.PROMPT_BYTES))
    if delegation.get("machine_id") != str(job["machine_id"]):
        problems.add("delegation.machine_id", "must be the machine")
    for name in _AGREE:
        if delegation.get(name) != authority.get(name):
            problems.add(f"delegation.{name}", "must be as in the authority")
    if delegation.get("timeout_ms") != budget.get("wall_clock_ms"):
        problems.add("delegation.timeout_ms", "must be the budget's wall clock")


def _check_snapshots(authority: Mapping[str, Any], budget: Mapping[str, Any], problems: Problems) -> None:
    problems.one_of("authority_snapshot.machine_tier", authority.get("machine_tier"), MachineTier.values)
    problems.text("authority_snapshot.agent_id", authority.get("agent_id"), limits.AGENT_ID_BYTES)
    problems.text("authority_snapshot.cwd", authority.get("cwd"), limits.CWD_BYTES)
    problems.text("authority_snapshot.machine_name", authority.get("machine_name"), limits.MACHINE_NAME_BYTES)
    if not isinstance(authority.get("roots"), list) or not authority["roots"]:
        problems.add("authority_snapshot.roots", "must be a list with at least one folder")
    problems.whole("budget_snapshot.wall_clock_ms", budget.get("wall_clock_ms"), limits.LONGEST_DELEGATION_MS)
    problems.whole(
        "budget_snapshot.maximum_prompt_bytes", budget.get("maximum_prompt_bytes"), limits.PROMPT_BYTES
    )
    if budget.get("maximum_report_bytes") != limits.REPORT_BYTES:
        problems.add("budget_snapshot.maximum_report_bytes", f"must be {limits.REPORT_BYTES:,}")


def _check_size(field: str, value: Mapping[str, Any], most: int, problems: Problems) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)  # spaced as the database writes it
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        return problems.add(field, "must be JSON")
    if size > most or "\\u0000" in text:
        problems.add(field, f"must have at most {most:,} bytes and no NUL")
    return None
