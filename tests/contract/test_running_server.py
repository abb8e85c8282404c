"""The API's description and the running server say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openagents_site.api.examples import recorded
from tests.contract import fuzzing, recording, secrets_in_a_box, secrets_kept, tour
from tests.contract.client_at_work import SCRIPT
from tests.contract.exchange import Exchange
from tests.contract.installation import Running
from tests.faults.installation import Api

pytestmark = [pytest.mark.system, pytest.mark.django_db, pytest.mark.timeout(900)]
SEED = 20261130


@pytest.fixture(scope="module")
def process_list() -> secrets_kept.ProcessList:
    return secrets_kept.ProcessList()


@pytest.fixture(scope="module")
def exchanges(server: Running, process_list: secrets_kept.ProcessList) -> dict[str, Exchange]:
    """A tour; with RECORD_EXAMPLES=1 it becomes what the description shows from now on."""
    with process_list:
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


def test_no_secret_is_in_plain_text_where_others_look_or_in_the_database(
    server: Running, exchanges: dict[str, Exchange], process_list: secrets_kept.ProcessList
) -> None:
    with secrets_kept.ProcessList() as later:
        used = secrets_in_a_box.use(server)
    secrets = secrets_kept.known(server, exchanges) | used
    found = secrets_kept.places(secrets, {"a process list": "\n".join(process_list.seen | later.seen)})
    found += secrets_kept.places(secrets, secrets_kept.logs(server))
    found += secrets_kept.places(secrets, secrets_kept.open_files(server))
    found += secrets_kept.places(secrets, {"the database": secrets_kept.dump(server.installation.database)})

    assert len(secrets) >= 16, secrets.keys()
    assert found == []


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
    for token in server.tokens.values():  # who has revoked it was only refused from then on
        assert Api(server.url, token)("GET", "me").status_code != 401
