"""The outcome of a tool call, checked before it is written down. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from base.text import keep_first_bytes, storable
from work import digests, limits
from work.errors import InvalidToolOutcome
from work.states import TERMINAL_STEPS, StepStatus


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call, as it is kept."""

    call_id: str
    tool_name: str
    status: StepStatus
    digest: str
    result: Any
    error: dict[str, Any] | None
    usage: dict[str, Any]
    executor_id: str
    executor_disclosure: Any
    target_receipt_refs: list[Any]
    attribution_refs: list[Any]


def parse(outcome: Mapping[str, Any]) -> Outcome:
    """The outcome given as a map: `call_id, tool_name, status, executor (id, disclosure?), target_receipt_refs,
    attribution_refs`, with `result` for a success or `error` (a map with `code`) for anything else, and `usage?`.

    Raises InvalidToolOutcome.
    """
    plain = digests.storable_json(dict(outcome))
    status = _status(plain.get("status"))
    executor = _map(plain.get("executor"), "executor")
    if not isinstance(executor.get("id"), str) or not executor["id"]:
        raise InvalidToolOutcome(detail="executor.id must name who carried the call out")
    result, error = plain.get("result"), plain.get("error")
    if status == StepStatus.SUCCEEDED:
        _expect(result is not None and error is None, "a success has a result and no error")
    else:
        _expect(result is None, "only a success has a result")
        error = _map(error, "error")
        _expect(isinstance(error.get("code"), str) and error["code"] != "", "an error has a code")
    _expect(_size(result) <= limits.RESULT_BYTES, f"a result has at most {limits.RESULT_BYTES:,} bytes")
    return Outcome(
        call_id=str(plain.get("call_id", "")),
        tool_name=tool_name_of(str(plain.get("tool_name", ""))),
        status=status,
        digest=_digest(plain),
        result=result,
        error=error,
        usage=_map(plain.get("usage") or {}, "usage"),
        executor_id=keep_first_bytes(executor["id"], 128),
        executor_disclosure=executor.get("disclosure"),
        target_receipt_refs=_list(plain.get("target_receipt_refs"), "target_receipt_refs"),
        attribution_refs=_list(plain.get("attribution_refs"), "attribution_refs"),
    )


def tool_name_of(name: str) -> str:
    """A tool's name as it is kept: a model may ask for a tool of any name."""
    return keep_first_bytes(storable(name), 128)


def _status(value: Any) -> StepStatus:
    if value not in TERMINAL_STEPS:
        raise InvalidToolOutcome(detail="status must be an end of a step")
    return StepStatus(value)


def _map(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidToolOutcome(detail=f"{name} must be a map")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidToolOutcome(detail=f"{name} must be a list")
    return value


def _expect(is_met: bool, text: str) -> None:
    if not is_met:
        raise InvalidToolOutcome(detail=text)


def _size(result: Any) -> int:
    """Its bytes, spaced as the database writes them."""
    try:
        return len(json.dumps(result, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise InvalidToolOutcome(detail="an outcome must be JSON") from error


def _digest(plain: Mapping[str, Any]) -> str:
    try:
        return digests.digest(plain)
    except ValueError as error:
        raise InvalidToolOutcome(detail="an outcome must be JSON") from error
