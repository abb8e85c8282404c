"""A delegation to an agent that is not ours: codex-acp, with a mock of its model, and no network.

Left out unless CODEX_ACP names the program (`npm install @zed-industries/codex-acp@0.16.0`, 233 MB, then
`node_modules/.bin/codex-acp`).
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.connector.conftest import Connector
from tests.peers import needs
from tests.work.aimock import Aimock

CODEX = os.environ.get("CODEX_ACP", "")
pytestmark = [
    pytest.mark.system,
    pytest.mark.django_db,
    pytest.mark.timeout(600),
    needs("aimock"),
    pytest.mark.skipif(not CODEX, reason="CODEX_ACP does not name the program"),
]
PROMPT = "make the file"
COMMAND = json.dumps({"cmd": "echo made-by-codex > made.txt"})
FIXTURES = [
    {
        "match": {"userMessage": PROMPT, "hasToolResult": False},
        "response": {"toolCalls": [{"name": "exec_command", "arguments": COMMAND}]},
    },
    {
        "match": {"userMessage": PROMPT, "hasToolResult": True},
        "response": {"content": "That is what came of it."},
    },
]


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Aimock]:
    folder = tmp_path / "model"
    folder.mkdir()
    with Aimock(folder, FIXTURES) as running:
        yield running


@pytest.fixture
def with_codex(connector_of: Callable[[], Connector], model: Aimock) -> Callable[[str], Connector]:
    """`with_codex(tier)` is a paired computer whose agent is the real one."""

    def make(tier: str) -> Connector:
        provider = f'{{name="mock",base_url="{model.base_url}",env_key="MOCK_KEY",wire_api="responses"}}'
        settings = {
            "model_provider": '"mock"', "model_providers.mock": provider, "model": '"gpt-5"',
            "sandbox_mode": '"danger-full-access"', "approval_policy": '"untrusted"',
        }  # fmt: skip
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        connector = connector_of()
        home = connector.folder / "codex"
        home.mkdir()
        connector.surroundings = {"CODEX_HOME": str(home), "MOCK_KEY": "not-a-key"}
        connector.pair(tier, f"codex={shlex.join([CODEX, *given])}")
        connector.start()
        connector.await_online()
        return connector

    return make


def test_a_real_agent_works_in_the_folder_and_reports(with_codex: Any, model: Aimock) -> None:
    connector = with_codex("shell")

    done = connector.end_of(connector.delegate(PROMPT, agent_id="codex"))

    assert (done["status"], done["error_code"]) == ("completed", None), done["report"]
    assert (connector.root / "made.txt").read_text() == "made-by-codex\n"
    assert "That is what came of it." in done["report"]
    on_machine = done["delegation"]["on_machine"]
    assert (on_machine["session_id"] != "", on_machine["tool_calls"]) == (True, 1)
    assert [asked["decision"] for asked in on_machine["permissions"]] == ["allowed"]
    assert len(model.journal()) >= 2
    assert len(connector.processes()) == 1


def test_a_real_agent_is_refused_commands_where_only_changes_are_allowed(with_codex: Any) -> None:
    connector = with_codex("curated")

    done = connector.end_of(connector.delegate(PROMPT, agent_id="codex"))

    assert not (connector.root / "made.txt").exists()
    assert done["delegation"]["on_machine"]["refused_permissions"] == 1
    assert "policy refused what the agent asked for once" in done["report"]
