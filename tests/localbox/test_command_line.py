"""The program, as the one who starts it sees it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from localbox.uids import block
from tests.localbox.client import Http, wait_until
from tests.localbox.server import REPOSITORY, LocalboxServer


@pytest.fixture
def folder() -> Iterator[Path]:
    """A state folder that the uids of boxes can reach, which pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="localbox-test-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


def localbox(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LOCALBOX_")}
    return subprocess.run(
        [sys.executable, "-m", "localbox", *arguments],
        cwd=REPOSITORY,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_taken_port_is_one_sentence(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = localbox("serve", "--port", str(port), "--state-dir", str(folder))

    assert refused.returncode == 2
    assert refused.stderr == (
        f"localbox: Port {port} on 127.0.0.1 is taken; choose another with --port or LOCALBOX_PORT.\n"
    )


def test_an_address_of_another_machine_is_one_sentence(folder: Path) -> None:
    refused = localbox("serve", "--host", "192.0.2.1", "--state-dir", str(folder))

    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "192.0.2.1" in refused.stderr


def test_a_wrong_setting_is_one_sentence() -> None:
    refused = localbox("serve", LOCALBOX_PORT="http")

    assert refused.returncode == 2
    assert refused.stderr == "localbox: LOCALBOX_PORT must be a whole number from 0 to 65535, not 'http'.\n"


def test_a_state_folder_that_cannot_be_made_is_one_sentence(folder: Path) -> None:
    (folder / "file").write_text("")

    refused = localbox("serve", "--state-dir", str(folder / "file" / "state"))

    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_a_state_folder_that_boxes_cannot_reach_is_one_sentence(folder: Path) -> None:
    folder.chmod(0o700)

    answer = localbox("sweep", "--state-dir", str(folder / "state"))

    if block(folder) is None:  # not root: boxes run as the provider's own user, who can
        assert answer.returncode == 0
        return
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "cannot enter" in answer.stderr


def test_plain_boxes_without_a_network_are_not_promised(folder: Path) -> None:
    refused = localbox(
        "serve", "--sandbox", "plain", "--port", "0", "--state-dir", str(folder), LOCALBOX_NETWORK="0"
    )

    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "LOCALBOX_NETWORK" in refused.stderr


def test_records_that_are_no_database_are_one_sentence(folder: Path) -> None:
    (folder / "private").mkdir()
    (folder / "private" / "localbox.sqlite3").write_text("nonsense" * 1_000)

    refused = localbox("serve", "--port", "0", "--state-dir", str(folder))

    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_records_of_a_later_version_are_one_sentence(folder: Path) -> None:
    (folder / "private").mkdir()
    with contextlib.closing(sqlite3.connect(folder / "private" / "localbox.sqlite3")) as records:
        records.execute("PRAGMA user_version = 999")

    refused = localbox("serve", "--port", "0", "--state-dir", str(folder))

    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "later version" in refused.stderr


def test_a_second_server_on_the_same_folder_is_refused(localbox_server: LocalboxServer) -> None:
    refused = localbox("serve", "--port", "0", "--state-dir", str(localbox_server.state_dir))

    assert refused.returncode == 2
    assert refused.stderr == f"localbox: Another localbox is using {localbox_server.state_dir}.\n"


def test_the_key_is_in_no_process_list_and_in_no_file_that_others_can_read(
    localbox_server: LocalboxServer,
) -> None:
    everyone = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    private = localbox_server.state_dir / "private"

    assert not any(localbox_server.key in " ".join(cmdline) for cmdline in everyone)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in private.glob("*.sqlite3")} == {0}


def test_a_box_does_not_see_the_key(localbox_server: LocalboxServer) -> None:
    http = Http(localbox_server)
    box_id = http("POST", "/boxes").json()["box"]["id"]
    wait_until(lambda: http("GET", f"/boxes/{box_id}").json()["box"]["state"] == "ready")
    same_user = block(localbox_server.state_dir) is None and runtime_of(localbox_server) == "plain"
    everywhere = "env" if same_user else "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'"

    answer = http("POST", f"/boxes/{box_id}/commands", json={"command": everywhere}).json()

    assert "BOX_ID" in answer["stdout"]
    assert "LOCALBOX_KEY" not in answer["stdout"]


def runtime_of(server: LocalboxServer) -> str:
    return str(requests.get(f"{server.origin}/healthz", timeout=30).json()["runtime"])


def test_without_a_key_one_is_made_kept_and_said_once(folder: Path) -> None:
    first, first_url, key = started_without_key(folder)
    second, _, same = started_without_key(folder)

    path = folder / "private" / "key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert first[0] == f"localbox made itself a key: it is in {path}\n"
    assert first_url.startswith("http://127.0.0.1:")
    assert [line.startswith("localbox ready") for line in second] == [True]
    assert key == same
    assert key.startswith("box_")


def started_without_key(folder: Path) -> tuple[list[str], str, str]:
    """What it said until it was ready, its address, and the key that opened it."""
    command = [sys.executable, "-m", "localbox", "serve", "--port", "0", "--state-dir", str(folder)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        said = []
        for line in process.stdout or ():
            said.append(line)
            if line.startswith("localbox ready"):
                break
        url = said[-1].split(" ")[3]
        key = (folder / "private" / "key").read_text().strip()
        answer = requests.get(f"{url}/api/box/v1/me", headers={"Authorization": f"Bearer {key}"}, timeout=30)
        process.terminate()
    assert (answer.status_code, process.returncode) == (200, 0)
    return said, url, key


def test_latency_is_added_where_it_is_asked_for(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(latency_ms="150"))

    assert http("GET", "/me").elapsed.total_seconds() >= 0.15
