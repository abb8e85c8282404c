"""The same tests as an ordinary user, when the session is root."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from tests.base.ordinary_user import becoming_nobody

from .conftest import CHECKOUT, as_root, make_passable_folder

HERE = Path(__file__).parent


@pytest.fixture
def home():
    nobody = pwd.getpwnam("nobody")
    folder = make_passable_folder()
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


@as_root
@pytest.mark.system
@pytest.mark.timeout(600)  # a dozen tests in one
@pytest.mark.parametrize("module", ["test_life.py", "test_crashes.py"])
def test_an_ordinary_user_has_all_of_it(module, home):
    settings = ["-c", os.devnull, "--rootdir", CHECKOUT, "--confcutdir", HERE]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }

    done = subprocess.run(
        [
            *becoming_nobody(),
            sys.executable,
            "-B",
            "-m",
            "pytest",
            *settings,
            "-p",
            "no:cacheprovider",
            "-q",
            HERE / module,
        ],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
