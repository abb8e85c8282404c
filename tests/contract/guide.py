"""`python -m tests.contract.guide`: put the recorded answers into `docs/guides/api.md`, behind each comment that names an operation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from openagents_site.api.examples import recorded

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "api.md"
MARKED = re.compile(r"^(<!-- (\w+ /\S+) -->)\n(?:\n```\n.*?\n```\n)?", re.M | re.S)
MOST_LINES = 32
REQUIRE_A_KEY = {"POST /api/v1/runs"}


def rendered(text: str) -> str:
    """The guide with the answers as they are recorded now."""
    known = recorded()
    return MARKED.sub(lambda found: f"{found[1]}\n\n```\n{_exchange(found[2], known[found[2]])}\n```\n", text)


def _exchange(operation: str, example: dict[str, Any]) -> str:
    method = operation.split(" ")[0]
    asked = f"{method} {example['path']}"
    if operation in REQUIRE_A_KEY:
        asked += f"\nIdempotency-Key: {example['answer']['idempotency_key']}"
    if example["body"] is not None:
        asked += "\n" + json.dumps(example["body"], ensure_ascii=False)
    return f"{asked}\n\n{example['status']}\n{_shortened(_text(example['answer']))}"


def _text(answer: Any) -> str:
    return answer.rstrip() if isinstance(answer, str) else json.dumps(answer, indent=2, ensure_ascii=False)


def _shortened(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], "..."])


if __name__ == "__main__":
    GUIDE.write_text(rendered(GUIDE.read_text()))
