"""The program's own ways: its commands, its files, what it says where something is wrong."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connector.agents import installed, parse_named, probe
from connector.cli import main
from connector.credentials import Credential
from connector.errors import AlreadyRunning, ConnectorError, NotPaired
from connector.places import Pairing, Places
from connector.server import checked_address

REPOSITORY = Path(__file__).resolve().parents[2]
PAIRING = Pairing("http://127.0.0.1:9", "id", "study", "curated", "smct_secret", ["/srv"], {"mine": ["sh"]})


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "state")


def test_it_imports_nothing_of_the_product() -> None:
    products = {
        "base",
        "accounts",
        "conversations",
        "boxes",
        "runs",
        "work",
        "forge",
        "openagents_site",
        "localbox",
        "django",
    }
    for file in (REPOSITORY / "connector").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & products, file


def test_it_can_be_installed_by_itself(tmp_path: Path) -> None:
    import tomllib

    about = tomllib.loads((REPOSITORY / "connector/pyproject.toml").read_text())

    assert len(about["project"]["dependencies"]) == 3
    assert about["tool"]["setuptools"]["package-dir"] == {"connector": "."}


def test_the_pairing_is_kept_for_its_owner_alone(places: Places) -> None:
    places.save(PAIRING)
    places.pairing_file.chmod(0o644)

    assert places.load() == PAIRING
    assert places.pairing_file.stat().st_mode & 0o777 == 0o600
    assert places.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["", "{", "[]", '{"server": 1}', '"x"'])
def test_a_broken_pairing_is_named(places: Places, text: str) -> None:
    places.prepare()
    places.pairing_file.write_text(text)

    with pytest.raises(ConnectorError, match="cannot be read"):
        places.load()


def test_one_connector_runs_from_a_folder(places: Places) -> None:
    held = places.lock()

    with pytest.raises(AlreadyRunning):
        places.lock()
    assert places.is_running()
    os.close(held)
    assert not places.is_running()


def test_forgetting_leaves_no_secret(places: Places) -> None:
    places.save(PAIRING)
    Credential(places.credentials, "job").keep({"origin": "https://a", "secret": "s"})

    places.forget()

    with pytest.raises(NotPaired):
        places.load()
    assert list(places.credentials.iterdir()) == []


@pytest.mark.parametrize("command", [["run"], ["status"], ["unpair"]])
def test_who_is_not_paired_is_told_what_to_do(tmp_path: Path, command: list[str], capsys: Any) -> None:
    assert main(["--state-dir", str(tmp_path / "none"), *command]) == 2
    assert "python -m connector pair" in capsys.readouterr().err


@pytest.mark.parametrize(
    "server",
    ["http://boxes.example.org", "boxes.example.org", "ftp://x", "https://", "https://u:p@x", "https://x?y=1", "http://localhost.evil.org"],
)  # fmt: skip
def test_a_server_that_would_get_the_key_in_the_clear_is_refused(server: str) -> None:
    with pytest.raises(ConnectorError):
        checked_address(server)


@pytest.mark.parametrize(
    "server", ["https://boxes.example.org/", "http://127.0.0.1:8000", "http://localhost:8000"]
)
def test_a_good_server_is_taken(server: str) -> None:
    assert checked_address(server) == server.rstrip("/")


def test_a_server_that_is_not_there_is_said_in_one_line(tmp_path: Path, capsys: Any) -> None:
    code = main(
        [
            "--state-dir",
            str(tmp_path / "s"),
            "pair",
            "--server",
            "http://127.0.0.1:9",
            "--root",
            str(tmp_path),
        ]
    )

    assert code == 1
    assert capsys.readouterr().err == "connector: the server cannot be reached: ConnectError\n"


def test_a_root_that_is_no_folder_is_said(tmp_path: Path, capsys: Any) -> None:
    code = main(
        [
            "--state-dir",
            str(tmp_path / "s"),
            "pair",
            "--server",
            "http://127.0.0.1:9",
            "--root",
            str(tmp_path / "no"),
        ]
    )

    assert (code, "is not a folder" in capsys.readouterr().err) == (1, True)


@pytest.mark.parametrize("text", ["x", "=y", "x=", "x='", "x" * 65 + "=y"])
def test_a_badly_named_agent_is_refused(text: str) -> None:
    with pytest.raises(ConnectorError):
        parse_named([text])


def test_agents_are_found_on_the_path_and_nothing_is_run(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("codex-acp", "goose"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    found = probe({"goose": ["not-there"], "mine": [str(tmp_path / "goose"), "--acp"]})

    assert [agent["id"] for agent in found["agents"]] == ["mine", "codex"]
    assert installed({})["goose"].command == ["goose", "acp"]
    assert not (tmp_path / "was-run").exists()


def test_git_gets_the_credential_for_its_origin_alone(tmp_path: Path) -> None:
    credential = Credential(tmp_path, "job")
    remembered = credential.keep(
        {"origin": "https://boxes.example.org", "username": "x", "secret": "s3cret", "branch": "b"}
    )

    assert remembered == {"origin": "https://boxes.example.org"}
    assert credential.file.stat().st_mode & 0o777 == 0o600
    surroundings = os.environ | credential.environment(remembered) | {"GIT_CONFIG_GLOBAL": "/dev/null"}
    assert "s3cret" not in str(credential.environment(remembered))

    def asked(host: str) -> str:
        return subprocess.run(
            ["git", "credential", "fill"],
            input=f"protocol=https\nhost={host}\n\n",
            env=surroundings,
            text=True,
            capture_output=True,
        ).stdout

    assert "password=s3cret" in asked("boxes.example.org")
    assert "s3cret" not in asked("other.example.org")
    credential.forget()
    assert credential.environment(remembered) == {}


@pytest.mark.parametrize(
    "handed",
    [
        None,
        "text",
        {},
        {"origin": "https://a"},
        {"origin": 1, "secret": "s"},
        {"origin": "https://a", "secret": "a\nb=c"},
    ],
)
def test_a_credential_that_is_none_is_not_kept(tmp_path: Path, handed: Any) -> None:
    credential = Credential(tmp_path, "job")

    assert credential.keep(handed) == {}
    assert not credential.file.exists()


def test_it_says_what_it_can_do(capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(command in said for command in ("pair", "run", "status", "unpair"))


def test_it_starts_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "connector", "--version"], cwd=REPOSITORY, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (0, "0.1.0\n")
