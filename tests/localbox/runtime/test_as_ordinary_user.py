"""Everything of this folder once more as an ordinary user, when it is root who tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from localbox.runtime.supervisor import processes

from .rig import IS_ROOT, arguments_of

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(__file__).parent
FIRST_USER = 61_900  # nobody's, one for each file: so that what is left of it can be told
SECONDS = 300
KERNEL_SECONDS = 10.0
CONFIGURATION = f"[pytest]\npythonpath = {ROOT}\nfilterwarnings = error\n"


FILES = sorted(path.name for path in FOLDER.glob("test_*.py") if path != Path(__file__))


def _as_user(user: int, arguments: list[str], home: str) -> subprocess.CompletedProcess[str]:
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
        arguments, user=user, group=user, extra_groups=[], env=environment, cwd=home, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip


def _python(user: int, home: str) -> str | None:
    """A Python that this user can start and that finds what the tests import."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if _as_user(user, [path, "-c", "import pytest, localbox.doctor"], home).returncode == 0:
                return path
        except OSError:
            continue
    return None


def _left_of(user: int) -> list[bytes]:
    """What this user still runs; what was killed a moment ago has the time that the kernel takes to end it."""
    end = time.monotonic() + KERNEL_SECONDS
    while (left := processes.of_uid(user)) and time.monotonic() < end:
        time.sleep(0.02)
    return [arguments_of(pid) for pid in left]


@pytest.mark.system
@pytest.mark.timeout(SECONDS + 30)
@pytest.mark.parametrize("name", FILES)
def test_it_holds_for_an_ordinary_user(name: str) -> None:
    if not IS_ROOT:
        pytest.skip("the other tests of this folder run as an ordinary user already")
    user = FIRST_USER + FILES.index(name)
    with tempfile.TemporaryDirectory(prefix="localbox-test-") as home:
        os.chown(home, user, user)
        python = _python(user, home)
        if python is None:
            pytest.skip("no Python on this machine that an ordinary user can start")
        Path(home, "pytest.ini").write_text(CONFIGURATION)
        options = [
            "-q",
            f"--confcutdir={FOLDER}",
            f"-c={home}/pytest.ini",
            f"--rootdir={ROOT}",
            f"--basetemp={home}/t",
        ]

        done = _as_user(
            user, [python, "-m", "pytest", *options, "-p", "no:cacheprovider", str(FOLDER / name)], home
        )

        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert _left_of(user) == []
