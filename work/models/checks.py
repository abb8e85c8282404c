"""Check constraints as SQL, where Django's own expressions would hide what they say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL

from work import limits


def check(name: str, sql: str) -> models.CheckConstraint:
    """`sql` must hold; where it is null it does not, so a missing key never passes."""
    condition = RawSQL(f"coalesce(({sql}), false)", (), output_field=models.BooleanField())  # noqa: S611 - ours
    return models.CheckConstraint(condition=condition, name=name)


def one_of(name: str, field: str, values: Iterable[str]) -> models.CheckConstraint:
    """The field is one of `values`."""
    return models.CheckConstraint(condition=Q(**{f"{field}__in": list(values)}), name=name)


def bytes_between(column: str, least: int, most: int) -> str:
    return f"octet_length({column}) between {least} and {most}"


def at_most(column: str, most: int) -> str:
    """The column is null or a text, or JSON as text, of at most `most` bytes."""
    return f"{column} is null or octet_length({column}::text) <= {most}"


def is_digest(column: str) -> str:
    """The column is null or a SHA-256 in lower-case hex."""
    return f"{column} is null or {column} ~ '^[0-9a-f]{{64}}$'"


def listed(values: Iterable[Any]) -> str:
    return ", ".join(f"'{value!s}'" for value in values)


def _text(column: str, key: str, least: int, most: int) -> str:
    value = f"{column} ->> '{key}'"
    return (
        f"jsonb_typeof({column} -> '{key}') = 'string' and octet_length({value}) between {least} and {most}"
    )


def _whole(column: str, key: str, least: int, most: int) -> str:
    value = f"({column} ->> '{key}')::numeric"
    return (
        f"case when jsonb_typeof({column} -> '{key}') = 'number'"
        f" then {value} between {least} and {most} and {value} = trunc({value}) else false end"
    )


# The nested CASE keeps every look into a map behind the proof that it is one.
DELEGATION_SHAPE = f"""kind <> 'delegation' or case
    when machine_id is null or jsonb_typeof(delegation) is distinct from 'object'
        or jsonb_typeof(authority_snapshot) is distinct from 'object'
        or jsonb_typeof(budget_snapshot) is distinct from 'object' then false
    when not coalesce({_whole("budget_snapshot", "wall_clock_ms", 1, limits.LONGEST_DELEGATION_MS)}, false)
        or not coalesce({_whole("budget_snapshot", "maximum_prompt_bytes", 1, limits.PROMPT_BYTES)}, false)
        or not coalesce({_whole("budget_snapshot", "maximum_report_bytes", limits.REPORT_BYTES, limits.REPORT_BYTES)}, false)
        or jsonb_typeof(authority_snapshot -> 'roots') is distinct from 'array' then false
    else jsonb_array_length(authority_snapshot -> 'roots') > 0
        and authority_snapshot ->> 'machine_tier' in ('probe', 'curated', 'shell')
        and {_text("authority_snapshot", "agent_id", 1, limits.AGENT_ID_BYTES)}
        and {_text("authority_snapshot", "cwd", 1, limits.CWD_BYTES)}
        and {_text("authority_snapshot", "machine_name", 1, limits.MACHINE_NAME_BYTES)}
        and {_text("delegation", "prompt", 1, limits.PROMPT_BYTES)}
        and octet_length(delegation ->> 'prompt') <= (budget_snapshot ->> 'maximum_prompt_bytes')::numeric
        and delegation ->> 'machine_id' = machine_id::text
        and delegation -> 'agent_id' = authority_snapshot -> 'agent_id'
        and delegation -> 'cwd' = authority_snapshot -> 'cwd'
        and delegation -> 'machine_name' = authority_snapshot -> 'machine_name'
        and delegation -> 'timeout_ms' = budget_snapshot -> 'wall_clock_ms'
    end"""
