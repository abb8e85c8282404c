"""`docs/security.md` names a test for each of its lines; these are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LINES = [line for line in (CHECKOUT / "docs/security.md").read_text().splitlines() if line.startswith("| ")]


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((CHECKOUT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_it_names_exists() -> None:
    named = [match.groups() for line in LINES for match in NAMED.finditer(line)]

    assert len(named) > 60
    assert [(file, name) for file, name in named if name not in names_in(file)] == []


def test_every_threat_has_a_test() -> None:
    threats = [line for line in LINES if line.count("|") == 4 and not line.startswith("| threat ")]

    assert len(threats) >= 40
    assert [line for line in threats if not NAMED.search(line)] == []
