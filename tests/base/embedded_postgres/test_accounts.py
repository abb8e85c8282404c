"""As root: whom the server runs as, what it can read, and who can reach it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from base.embedded_postgres import Account, Cluster, EmbeddedPostgresError, server_account
from base.embedded_postgres.binaries import COPY_PREFIX, Binaries, installed

from .conftest import SMALL, as_root, make_passable_folder

pytestmark = as_root
STRANGER = 54321


def uid_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def test_root_gives_the_server_to_an_unprivileged_account(cluster):
    account = server_account(cluster.layout.data)

    pid = cluster.start().pid

    assert uid_of(pid) == account.uid != 0
    assert cluster.layout.data.stat().st_uid == account.uid


@pytest.fixture
def give_to(folder):
    """Give the server's files to an account, until the test ends."""
    before = (folder / "data").stat()

    def give(uid: int, gid: int) -> None:
        subprocess.run(["chown", "-R", f"{uid}:{gid}", folder], check=True)

    yield give
    give(before.st_uid, before.st_gid)


def test_existing_data_decides_the_account(cluster, give_to):
    nobody = pwd.getpwnam("nobody")
    give_to(nobody.pw_uid, nobody.pw_gid)

    assert uid_of(cluster.start().pid) == nobody.pw_uid
    cluster.close()


def test_data_of_roots_is_refused(cluster, give_to):
    give_to(0, 0)

    with pytest.raises(EmbeddedPostgresError, match="belongs to root") as caught:
        cluster.start()

    assert caught.value.code == "wrong_owner"


def test_the_folder_of_a_stranger_is_refused(bare_folder):
    bare_folder.mkdir()
    os.chown(bare_folder, STRANGER, STRANGER)

    with pytest.raises(EmbeddedPostgresError) as caught:
        Cluster(bare_folder).start()

    assert caught.value.code == "wrong_owner"


@pytest.fixture
def closed_home():
    """A copy of the programs in a folder that only root can enter."""
    home = make_passable_folder()
    package = installed().folder.parents[1]
    shutil.copytree(package / "pginstall", home / package.name / "pginstall", symlinks=True)
    shutil.copytree(package.with_name(package.name + ".libs"), home / (package.name + ".libs"), symlinks=True)
    home.chmod(0o700)
    yield Binaries(home / package.name / "pginstall" / "bin")
    shutil.rmtree(home)


def test_programs_in_a_closed_home_are_copied_once_and_the_home_stays_closed(folder, closed_home):
    cluster = Cluster(folder, settings=SMALL, binaries=closed_home)

    cluster.start()
    copies = sorted(folder.glob(COPY_PREFIX + "*"))
    cluster.close()
    cluster.start()
    cluster.close()

    assert len(copies) == 1
    assert sorted(folder.glob(COPY_PREFIX + "*")) == copies
    assert closed_home.folder.parents[2].stat().st_mode & 0o777 == 0o700
    assert not list(copies[0].rglob("*.a"))


def test_a_newer_build_replaces_the_copy(folder, closed_home):
    Cluster(folder, settings=SMALL, binaries=closed_home).start_detached()
    Cluster(folder).stop()
    before = sorted(folder.glob(COPY_PREFIX + "*"))
    os.utime(closed_home.program("postgres"), (1, 1))

    Cluster(folder, settings=SMALL, binaries=closed_home).start_detached()

    after = sorted(folder.glob(COPY_PREFIX + "*"))
    assert len(before) == len(after) == 1
    assert before != after


@pytest.fixture
def strangers_psql():
    """psql where every account can run it."""
    home = make_passable_folder()
    package = installed().folder.parents[1]
    (home / package.name / "pginstall" / "bin").mkdir(parents=True)
    shutil.copy(installed().program("psql"), home / package.name / "pginstall" / "bin")
    for part in ("lib", "../../embedded_postgres.libs"):
        source = (
            (package / "pginstall" / part).resolve()
            if part == "lib"
            else package.with_name(package.name + ".libs")
        )
        shutil.copytree(source, (home / package.name / "pginstall" / part).resolve(), symlinks=True)
    subprocess.run(["chmod", "-R", "a+rX", home], check=True)
    yield str(home / package.name / "pginstall" / "bin" / "psql")
    shutil.rmtree(home)


def test_no_other_account_can_connect(cluster, strangers_psql):
    cluster.start()
    command = [strangers_psql, *cluster.psql_argv("-Atc", "select 1")[1:]]
    stranger = Account(STRANGER, STRANGER, "stranger")
    server = server_account(cluster.layout.data)

    refused = subprocess.run(command, capture_output=True, text=True, cwd="/", **stranger.popen_options())
    welcome = subprocess.run(command, capture_output=True, text=True, cwd="/", **server.popen_options())

    assert refused.returncode == 2
    assert "Permission denied" in refused.stderr
    assert welcome.stdout == "1\n"
