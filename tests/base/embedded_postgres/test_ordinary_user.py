"""The same tests as an ordinary user, when the session is root."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from tests.base.ordinary_user import becoming, becoming_nobody

from .conftest import CHECKOUT, as_root, make_passable_folder, processes_of

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


WITHOUT_A_NAME = """
import sys
from pathlib import Path
from base.embedded_postgres import Cluster
cluster = Cluster(Path(sys.argv[1]))
try:
    cluster.start()
except Exception as error:
    sys.exit(error.detail)
print(cluster.ensure_database().dbname)
cluster.close()
"""


@as_root
def test_a_containers_arbitrary_uid_without_a_name_works_or_is_told_what_lacks(home):
    os.chown(home, 1_234_567, 1_234_567)

    done = subprocess.run(
        [*becoming(1_234_567, 1_234_567), sys.executable, "-B", "-c", WITHOUT_A_NAME, home / "pg"],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )

    if namespaces_are_allowed():
        assert (done.stdout, done.stderr) == ("openagents_boxes\n", "")
    else:
        assert "/etc/passwd" in done.stderr
    assert processes_of(home) == []


def namespaces_are_allowed() -> bool:
    tried = subprocess.run(["unshare", "--user", "true"], user=1_234_567, capture_output=True)
    return tried.returncode == 0
