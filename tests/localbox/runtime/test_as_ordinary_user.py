"""Everything of this folder once more as an ordinary user, when it is root who tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from localbox.runtime.supervisor import processes

from .rig import IS_ROOT

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(__file__).parent
USER = 61_999  # nobody's: so that what is left of it can be told
SECONDS = 900
CONFIGURATION = f"[pytest]\npythonpath = {ROOT}\nfilterwarnings = error\n"


def _as_user(arguments: list[str], home: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.defpath,
        "HOME": home,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), *(path for path in sys.path if path.endswith("-packages"))]
        ),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(
        arguments, user=USER, group=USER, extra_groups=[], env=environment, cwd=home, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip


def _python(home: str) -> str | None:
    """A Python that this user can start and that finds what the tests import."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if _as_user([path, "-c", "import pytest, localbox.doctor"], home).returncode == 0:
                return path
        except OSError:
            continue
    return None


@pytest.mark.timeout(SECONDS + 30)
def test_it_holds_for_an_ordinary_user() -> None:
    if not IS_ROOT:
        pytest.skip("the other tests of this folder run as an ordinary user already")
    with tempfile.TemporaryDirectory(prefix="localbox-test-") as home:
        os.chown(home, USER, USER)
        python = _python(home)
        if python is None:
            pytest.skip("no Python on this machine that an ordinary user can start")
        Path(home, "pytest.ini").write_text(CONFIGURATION)
        options = [
            "-q",
            f"--ignore={__file__}",
            f"--confcutdir={FOLDER}",
            f"-c={home}/pytest.ini",
            f"--rootdir={ROOT}",
        ]

        done = _as_user(
            [python, "-m", "pytest", *options, "-p", "no:cacheprovider", f"--basetemp={home}/t", str(FOLDER)],
            home,
        )

        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert processes.of_uid(USER) == []
