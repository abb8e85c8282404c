"""What cannot be started is refused with a sentence, and nothing is left running or half-made."""

from __future__ import annotations

import os

import pytest

from base.embedded_postgres import Cluster, EmbeddedPostgresError
from base.embedded_postgres.binaries import Binaries

from .conftest import ENDLESS, SMALL


def refusal(cluster: Cluster) -> EmbeddedPostgresError:
    with pytest.raises(EmbeddedPostgresError) as caught:
        cluster.start()
    assert not cluster.owned
    return caught.value


@pytest.fixture
def version_file(folder):
    file = folder / "data" / "PG_VERSION"
    owner, text = file.stat(), file.read_text()
    yield file
    file.write_text(text)
    os.chown(file, owner.st_uid, owner.st_gid)


def test_data_of_another_major_version_is_left_alone(cluster, version_file):
    version_file.write_text("17\n")

    error = refusal(cluster)

    assert error.code == "version_mismatch"
    assert "made by PostgreSQL 17, the installed programs are version 18" in error.detail


def test_a_folder_of_other_files_is_not_taken_for_a_database(cluster, version_file):
    version_file.unlink()

    error = refusal(cluster)

    assert error.code == "not_a_cluster"
    assert (version_file.parent / "base").is_dir()


def test_a_file_in_place_of_the_folder(bare_folder):
    bare_folder.write_text("")

    error = refusal(Cluster(bare_folder))

    assert error.code == "folder_unusable"
    assert str(bare_folder) in error.detail
    bare_folder.unlink()


def test_a_setting_that_the_server_refuses_is_told_in_its_words(folder):
    error = refusal(Cluster(folder, settings={**SMALL, "max_connections": "-1"}))

    assert error.code == "start_failed"
    assert "max_connections" in error.detail


def test_a_server_that_is_not_ready_in_time_is_ended(folder, endless_recovery):
    endless_recovery()
    slow = Cluster(folder, settings={**SMALL, "restore_command": ENDLESS})

    with pytest.raises(EmbeddedPostgresError) as caught:
        slow.start(timeout=0.1)

    assert caught.value.code == "start_timeout"


def test_programs_that_do_not_run_are_named(folder, tmp_path):
    (tmp_path / "bin").mkdir()

    error = refusal(Cluster(folder, binaries=Binaries(tmp_path / "bin")))

    assert error.code == "binaries_unusable"
