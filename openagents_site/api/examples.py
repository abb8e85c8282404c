"""Examples in the OpenAPI description: real answers, recorded from a running installation into `examples.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("examples.json")


def recorded() -> dict[str, dict[str, Any]]:
    """By operation (`POST /api/v1/boxes`): `path`, `body` (null if there is none), `status` and `answer`."""
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())
    return found


def add_examples(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """A hook of drf-spectacular: every operation that was recorded shows its body and its answer."""
    known = recorded()
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            if example := known.get(f"{method.upper()} {path}"):
                _add(operation, example)
    return result


def _add(operation: dict[str, Any], example: dict[str, Any]) -> None:
    answer = operation["responses"].get(str(example["status"]), {})
    for media in answer.get("content", {}).values():
        media["example"] = example["answer"]
    if example["body"] is not None and "requestBody" in operation:
        for media in operation["requestBody"]["content"].values():
            media.pop("examples", None)  # either, says OpenAPI
            media["example"] = example["body"]
