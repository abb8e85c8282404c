"""The API's description and the running server say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openagents_site.api.examples import recorded
from tests.contract import fuzzing, recording, tour
from tests.contract.client_at_work import SCRIPT
from tests.contract.exchange import Exchange
from tests.contract.installation import Running

pytestmark = [pytest.mark.system, pytest.mark.django_db, pytest.mark.timeout(900)]
SEED = 20261130


@pytest.fixture(scope="module")
def exchanges(server: Running) -> dict[str, Exchange]:
    """A tour; with RECORD_EXAMPLES=1 it becomes what the description shows from now on."""
    found = tour.take(server)
    if os.environ.get("RECORD_EXAMPLES"):
        recording.write(recording.examples(found, server.url))
    return found


def operations(description: dict[str, Any]) -> set[str]:
    return {
        f"{method.upper()} {path}" for path, methods in description["paths"].items() for method in methods
    }


def test_the_tour_goes_through_every_operation(server: Running, exchanges: dict[str, Exchange]) -> None:
    assert set(exchanges) == operations(server.description())


def test_the_recorded_examples_are_what_the_server_answers(
    server: Running, exchanges: dict[str, Exchange]
) -> None:
    kept, now = recorded(), recording.examples(exchanges, server.url)

    assert set(kept) == set(now), "record anew with RECORD_EXAMPLES=1"
    for name in kept:
        found = list(recording.differences(kept[name], now[name], name))
        assert found == [], "record anew with RECORD_EXAMPLES=1"


def test_a_generated_client_compiles_and_does_a_run(
    server: Running, exchanges: dict[str, Exchange], tmp_path: Path
) -> None:
    description, client = tmp_path / "openapi.json", tmp_path / "client"
    description.write_text(fuzzing.as_json(server.description()))
    (tmp_path / "config.yaml").write_text("package_name_override: boxes_client\npost_hooks: []\n")
    program = Path(sys.executable).with_name("openapi-python-client")

    done(
        [program, "generate", "--path", description, "--output-path", client, "--config", tmp_path / "config.yaml",
         "--fail-on-warning"]
    )  # fmt: skip
    done([sys.executable, "-m", "compileall", "-q", client])
    said = done([sys.executable, "-c", SCRIPT, server.url, server.tokens["owner"]], cwd=client)

    assert said.splitlines()[-1] == "owner completed hello from a client"


def done(command: list[Any], cwd: Path | None = None) -> str:
    """What the program says. Fails if it fails."""
    ended = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


@pytest.mark.parametrize("caller", ["owner", "reader", None])
def test_no_request_that_a_fuzzer_thinks_of_breaks_the_contract(
    server: Running, exchanges: dict[str, Exchange], tmp_path: Path, caller: str | None
) -> None:
    ended = fuzzing.fuzz(
        server, exchanges, caller, tmp_path, seed=SEED, examples=4 if caller == "owner" else 1
    )

    assert ended.returncode == 0, ended.stdout[-6000:]
