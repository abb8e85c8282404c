"""schemathesis on a running installation: requests that nobody wrote by hand, judged by the API's own description."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.contract.exchange import Exchange
from tests.contract.installation import Running

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
SHORT, LONG = "examples,fuzzing", "examples,coverage,fuzzing"
"""Coverage alone is some fifty requests an operation."""
# A pass takes as long as the provider, and every request of every caller would begin one.
LEFT_OUT = r"/reconcile$"


Exchanges = dict[str, Exchange]


def as_json(description: dict[str, Any]) -> str:
    return json.dumps(description)


def fuzz(
    server: Running, exchanges: dict[str, Exchange], caller: str | None, folder: Path, *, seed: int, examples: int,
    seconds: int | None = None,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Ask as this caller; None asks without a token. `examples` requests an operation, or as many as fit into `seconds`."""
    (folder / "known.json").write_text(as_json(known_places(exchanges)))
    who = ["--header", f"Authorization: Bearer {server.tokens[caller]}"] if caller else []
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION),
        "run", f"{server.url}/api/schema/?format=json", *who,
        "--seed", str(seed), "--max-examples", str(examples), "--phases", LONG if seconds else SHORT,
        "--exclude-path-regex", LEFT_OUT, "--no-shrink", "--continue-on-failure", "--request-timeout", "60",
        "--suppress-health-check", "all", "--warnings", "off",
        *(["--max-time", str(seconds)] if seconds else []),
    ]  # fmt: skip
    environment = os.environ | {
        "PYTHONPATH": str(REPOSITORY),
        "SCHEMATHESIS_HOOKS": "tests.contract.fuzz_hooks",
        "FUZZ_KNOWN": str(folder / "known.json"),
        "NO_COLOR": "1",
    }
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def known_places(exchanges: dict[str, Exchange]) -> dict[str, list[str]]:
    """What stood in each place of a path during the tour, so that requests meet objects that are there."""
    found = defaultdict(set)
    for each in exchanges.values():
        template = each.operation.split(" ", 1)[1]
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template))
        if match := re.fullmatch(pattern, each.path.split("?")[0]):
            for name, value in match.groupdict().items():
                found[name].add(value)
    return {name: sorted(values) for name, values in found.items()}
