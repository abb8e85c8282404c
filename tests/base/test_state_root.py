"""Where an installation keeps its files, and who can read them."""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from base import state_root
from base.state_root import StateRootError
from base.state_root.errors import sentence_for
from base.state_root.location import LOCATION
from base.state_root.reach import FIRST_BOX_UID

from .ordinary_user import CHECKOUT, becoming_nobody

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="changes accounts, which only root may")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def place():
    """A folder that other accounts can pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="oab-state-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def checkout(place):
    (place / "checkout").mkdir(mode=0o755)
    return place / "checkout"


def prepare(checkout, **environ):
    return state_root.prepare(environ, checkout, checkout.parent / "shared")


def refusal(call, *arguments, **keywords) -> StateRootError:
    with pytest.raises(StateRootError) as caught:
        call(*arguments, **keywords)
    return caught.value


def test_it_is_the_data_folder_of_the_checkout_unless_told_otherwise(checkout):
    assert state_root.resolve({}, checkout) == checkout / ".data"
    assert state_root.resolve({"STATE_DIR": " "}, checkout) == checkout / ".data"
    assert state_root.resolve({"STATE_DIR": "/srv/boxes"}, checkout) == Path("/srv/boxes")
    assert not (checkout / ".data").exists()


def test_a_relative_state_dir_is_below_the_checkout_wherever_a_process_runs(checkout, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert state_root.resolve({"STATE_DIR": "state"}, checkout) == checkout / "state"


def test_it_is_prepared_with_the_right_modes_whatever_the_umask(checkout):
    before = os.umask(0o077)
    try:
        state = prepare(checkout, STATE_DIR=str(checkout / "deep" / "state"))
    finally:
        os.umask(before)

    passable = 0o711 if ROOT else 0o700
    assert [mode(path) for path in (state.path, state.boxes, state.private)] == [passable, passable, 0o700]
    assert state.notice is None


def test_it_is_prepared_again_without_change_and_a_loosened_mode_is_tightened(checkout):
    first = prepare(checkout)
    first.private.chmod(0o755)

    assert prepare(checkout) == first
    assert mode(first.private) == 0o700


def test_two_processes_prepare_at_once(checkout):
    with ThreadPoolExecutor(8) as pool:
        states = set(pool.map(lambda _: prepare(checkout), range(16)))

    assert len(states) == 1


def test_a_folder_with_other_files_in_it_is_not_taken(place, checkout):
    (place / "home").mkdir(mode=0o755)
    (place / "home" / "thesis.txt").touch()

    error = refusal(prepare, checkout, STATE_DIR=str(place / "home"))

    assert error.code == "not_empty"
    assert mode(place / "home") == 0o755


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_in_its_place_is_refused(checkout, below):
    (checkout / "file").touch()

    error = refusal(prepare, checkout, STATE_DIR=str(checkout / "file" / below))

    assert error.code == "not_a_directory"
    assert str(checkout / "file") in error.detail


def test_a_place_where_nothing_can_be_made_is_refused(checkout):
    error = refusal(prepare, checkout, STATE_DIR="/sys/state")

    assert error.code == "not_writable"
    assert "/sys/state" in error.detail


def test_a_link_to_nothing_is_refused(checkout):
    (checkout / ".data").symlink_to(checkout / "gone")

    assert refusal(prepare, checkout).code == "not_a_directory"


def test_a_link_of_ours_to_a_folder_of_ours_is_followed(place, checkout):
    (place / "disk").mkdir()
    (checkout / ".data").symlink_to(place / "disk")

    assert prepare(checkout).private.is_dir()
    assert (place / "disk" / "private").is_dir()


def test_a_garbled_location_is_refused(checkout):
    (checkout / ".data").mkdir()
    (checkout / ".data" / LOCATION).write_text("somewhere else")

    assert refusal(state_root.resolve, {}, checkout).code == "bad_location"


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.EACCES, "not_writable", "not writable"),
        (errno.EROFS, "not_writable", "read-only"),
        (errno.ENOSPC, "no_space", "without free space"),
        (errno.EDQUOT, "no_space", "quota"),
        (errno.EIO, "unusable", "Input/output error"),
    ],
)
def test_what_the_system_says_becomes_one_sentence(number, code, words):
    error = sentence_for(OSError(number, ""), Path("/srv/state"))

    assert (error.code, error.detail.count(". ")) == (code, 0)
    assert words in error.detail
    assert "/srv/state" in error.detail


# Secrets


def test_a_secret_is_made_once_and_only_its_account_can_read_it(place):
    prepare(place, STATE_DIR=str(place / "state"))

    secret = state_root.private_secret("secret_key", place / "state")

    assert len(secret) == 43
    assert state_root.private_secret("secret_key", place / "state") == secret
    assert state_root.private_secret("other", place / "state") != secret
    assert mode(place / "state" / "private" / "secret_key") == 0o600


def test_processes_that_ask_at_once_get_the_same_secret(place):
    state = prepare(place, STATE_DIR=str(place / "state"))
    script = "import sys; from pathlib import Path; from base import state_root; print(state_root.private_secret('key', Path(sys.argv[1])))"
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", script, state.path], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]

    secrets = {process.communicate()[0] for process in asking}

    assert len(secrets) == 1
    assert secrets.pop().strip() == state_root.private_secret("key", state.path)


def test_a_half_written_secret_is_not_used(place):
    state = prepare(place, STATE_DIR=str(place / "state"))
    (state.private / "key").touch()
    (state.private / ".key.unfinished").write_text("half of i")

    secret = state_root.private_secret("key", state.path)

    assert len(secret) == 43
    assert state_root.private_secret("key", state.path) == secret


def test_a_readable_secret_is_closed(place):
    state = prepare(place, STATE_DIR=str(place / "state"))
    secret = state_root.private_secret("key", state.path)
    (state.private / "key").chmod(0o644)

    assert state_root.private_secret("key", state.path) == secret
    assert mode(state.private / "key") == 0o600


def test_a_link_in_place_of_a_secret_is_refused(place):
    state = prepare(place, STATE_DIR=str(place / "state"))
    (state.private / "key").symlink_to("/etc/passwd")

    assert refusal(state_root.private_secret, "key", state.path).code == "wrong_owner"


@pytest.mark.parametrize("name", ["", "../key", "a/b", ".hidden", "Key", "k" * 200])
def test_a_bad_name_of_a_secret_is_refused(place, name):
    assert refusal(state_root.private_secret, name, place / "state").code == "bad_name"


def test_a_secret_is_had_before_anything_was_prepared(place, monkeypatch):
    monkeypatch.setenv("STATE_DIR", str(place / "new"))

    assert len(state_root.private_secret("secret_key")) == 43
    assert (place / "new" / "boxes").is_dir()


# The embedded provider's address


def test_the_providers_address_is_told_to_later_processes(place):
    state = prepare(place, STATE_DIR=str(place / "state"))
    assert state_root.provider_url(state.path) is None

    state_root.record_provider_url("http://127.0.0.1:4711", state.path)

    assert state_root.provider_url(state.path) == "http://127.0.0.1:4711"


# As root, whose programs run as other accounts


@as_root
def test_a_checkout_below_a_closed_home_has_its_state_elsewhere_and_stays_closed(place, checkout):
    checkout.chmod(0o700)

    state = prepare(checkout)

    assert state.path.parent == place / "shared"
    assert f"kept in {state.path}" in state.notice
    assert state_root.resolve({}, checkout) == state.path
    assert prepare(checkout) == state
    assert mode(checkout) == 0o700
    assert not (checkout / ".data" / "private").exists()


@as_root
def test_the_other_place_is_found_again_when_the_checkout_was_cleaned(checkout):
    checkout.chmod(0o700)
    state = prepare(checkout)
    shutil.rmtree(checkout / ".data")

    assert prepare(checkout) == state


@as_root
def test_state_that_became_unreachable_is_not_left_behind(checkout):
    prepare(checkout)
    checkout.chmod(0o700)

    error = refusal(prepare, checkout)

    assert error.code == "unreachable"
    assert "chmod a+x" in error.detail


@as_root
def test_a_state_dir_that_others_cannot_reach_is_refused_by_name(checkout):
    checkout.chmod(0o700)

    error = refusal(prepare, checkout, STATE_DIR=str(checkout / "state"))

    assert error.code == "unreachable"
    assert str(checkout / "state") in error.detail


@as_root
def test_without_an_embedded_database_only_the_boxes_account_counts(checkout):
    server = pwd.getpwnam("nobody")
    os.chown(checkout, 0, server.pw_gid)
    checkout.chmod(0o701)
    (checkout / ".data" / "postgres" / "data").mkdir(parents=True)
    os.chown(checkout / ".data" / "postgres" / "data", server.pw_uid, server.pw_gid)

    assert refusal(prepare, checkout).code == "unreachable"
    assert prepare(checkout, DATABASE_URL="postgres://db/x").path == checkout / ".data"


@as_root
def test_a_box_can_reach_its_folder_and_nothing_else(checkout):
    state = prepare(checkout)
    (state.boxes / "box1").mkdir(mode=0o700)
    os.chown(state.boxes / "box1", FIRST_BOX_UID, FIRST_BOX_UID)

    def box_can(test: str) -> bool:
        command = ["/bin/sh", "-c", test]
        return (
            subprocess.run(
                command,
                cwd="/",
                user=FIRST_BOX_UID,
                group=FIRST_BOX_UID,
                extra_groups=[],
                stderr=subprocess.DEVNULL,
            ).returncode
            == 0
        )

    assert box_can(f"cd {state.boxes}/box1 && touch file")
    assert not box_can(f"ls {state.boxes}")
    assert not box_can(f"ls {state.path}")
    assert not box_can(f"cd {state.private}")


@as_root
@pytest.mark.parametrize("link", [False, True])
def test_a_private_folder_of_somebody_else_is_refused(place, checkout, link):
    theirs = place / "theirs" if link else checkout / ".data" / "private"
    theirs.mkdir(parents=True)
    os.chown(theirs, 54321, 54321)
    if link:
        (checkout / ".data").mkdir()
        (checkout / ".data" / "private").symlink_to(theirs)

    error = refusal(prepare, checkout)

    assert error.code == "wrong_owner"
    assert "uid 54321" in error.detail


@as_root
def test_a_secret_of_somebody_else_is_refused(place):
    state = prepare(place, STATE_DIR=str(place / "state"))
    (state.private / "key").write_text("known to them")
    os.chown(state.private / "key", 54321, 54321)

    assert refusal(state_root.private_secret, "key", state.path).code == "wrong_owner"


AS_ANOTHER = """
import sys
from pathlib import Path
from base import state_root
try:
    state_root.prepare({}, Path(sys.argv[1]))
except state_root.StateRootError as error:
    print(error.code, error.detail)
"""


@as_root
def test_another_account_is_refused_in_one_line(checkout):
    prepare(checkout)

    done = subprocess.run(
        [*becoming_nobody(), sys.executable, "-c", AS_ANOTHER, checkout],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert done.stdout.startswith("wrong_owner")
