"""`bin/up` and `bin/test` up to the point where everything is installed: real environments, a package of our own."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import eventually

from .conftest import CHECKOUT, PATIENCE_SECONDS

pytestmark = pytest.mark.system
REAL_PYTHON = Path(sys.executable).resolve()
TOOLS = ("sh", "dirname", "readlink", "env", "uname", "git")
BEFORE = {"bin", "openagents_site", "requirements-dev.txt", "requirements.txt"}
LAUNCHED = "import sys, sample; print('launched', *sys.argv[1:])\n"


class Clone:
    """A small checkout whose one requirement is a wheel beside it, and a PATH that holds what a test wants."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "check out"
        self.path = folder / "path"
        self.path.mkdir()
        for tool in TOOLS:
            self.path.joinpath(tool).symlink_to(str(shutil.which(tool)))
        self.real_python = REAL_PYTHON
        self.said_first = (0, "")
        self.python('exec "$REAL" "$@"')
        shutil.copytree(CHECKOUT / "bin", self.checkout / "bin", ignore=shutil.ignore_patterns("__pycache__"))
        launcher = self.checkout / "openagents_site" / "launcher"
        launcher.mkdir(parents=True)
        launcher.joinpath("__main__.py").write_text(LAUNCHED)
        self.require(_wheel(folder, "1.0"))
        self.next_digest = _wheel(folder, "2.0")
        self.environment = {
            "PATH": str(self.path),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(folder),
            "PIP_RETRIES": "0",
        }

    def python(self, script: str) -> None:
        """What `python3` on the PATH is; `$REAL` is the real one."""
        program = self.path / "python3"
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\nREAL='{self.real_python}'\n{script}\n")
        program.chmod(0o755)

    def program(self, name: str, script: str) -> None:
        (self.path / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.path / name).chmod(0o755)

    def require(self, digest: str, version: str = "1.0", comment: str = "#") -> None:
        for name in ("requirements.txt", "requirements-dev.txt"):
            (self.checkout / name).write_text(
                f"{comment}\nsample=={version} \\\n    --hash=sha256:{digest}\n"
            )

    def start(self, *arguments: str, command: str | Path = "", **options: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
            [str(command or self.checkout / "bin" / "up"), *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **options,
        )

    def up(self, *arguments: str, command: str | Path = "", **options: object) -> tuple[int, str]:
        """Exit status and output."""
        process = self.start(*arguments, command=command, **options)
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, said


def _wheel(folder: Path, version: str) -> str:
    """A package `sample`; its digest."""
    file = folder / f"sample-{version}-py3-none-any.whl"
    data = f"sample-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("sample.py", "")
        wheel.writestr(f"{data}/METADATA", f"Metadata-Version: 2.1\nName: sample\nVersion: {version}\n")
        wheel.writestr(
            f"{data}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{data}/RECORD", f"sample.py,,\n{data}/METADATA,,\n")
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def clone() -> Iterator[Clone]:
    yield from _clone()


@pytest.fixture(scope="module")
def installed() -> Iterator[Clone]:
    """A clone that was started once; `said_first` is what it said."""
    for clone in _clone():
        link = clone.path / "link"
        link.symlink_to("../check out/bin/up")
        clone.said_first = clone.up("--once", "two words", command=link, cwd="/")
        yield clone


def _clone() -> Iterator[Clone]:
    """In a folder that every account can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="bootstrap-"))
    folder.chmod(0o755)
    yield Clone(folder)
    shutil.rmtree(folder)


@pytest.fixture
def outdated(installed: Clone) -> Iterator[Clone]:
    """The installed clone after an update of its requirements, so that the next start installs again."""
    environment = dict(installed.environment)
    text = (installed.checkout / "requirements.txt").read_text()
    installed.require(text.rpartition(":")[2].split()[0], comment=f"# {time.monotonic_ns()}")
    yield installed
    installed.environment = environment
    (installed.checkout / "requirements.txt").write_text(text)


def ordinary_user(clone: Clone) -> dict[str, object]:
    """Options of a process that is not root's, with a Python that it can run."""
    if os.getuid() != 0:
        return {}
    options: dict[str, object] = {"user": 65534, "group": 65534, "extra_groups": []}
    for python in (REAL_PYTHON, Path("/usr/bin/python3")):
        try:
            fits = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
            subprocess.run([str(python), "-I", "-c", fits], check=True, **options)  # type: ignore[call-overload]
        except (OSError, subprocess.CalledProcessError):
            continue
        clone.real_python = python
        return options
    pytest.skip("root's Python cannot be run by another account")


def one_sentence(said: str) -> str:
    assert "Traceback" not in said
    sentence = said.strip().splitlines()[-1]
    assert sentence.startswith("bin/up: ")
    assert sentence.endswith(".")
    return sentence


def test_it_installs_once_whatever_the_path_the_folder_and_the_home(installed: Clone) -> None:
    status, said = installed.said_first

    again = installed.up("--once", "two words", cwd="/")

    assert status == 0, said
    assert "Installing up to 1 packages" in said
    assert said.endswith("launched up --once two words\n")
    assert again == (0, "launched up --once two words\n")
    assert {path.name for path in installed.checkout.iterdir()} - BEFORE == {".cache", ".venv"}


def test_it_installs_again_when_the_requirements_changed(outdated: Clone) -> None:
    status, said = outdated.up()

    assert (status, "Installing up to 1 packages" in said) == (0, True)
    assert "Making the virtual environment" not in said


def test_two_starts_at_once_install_once(outdated: Clone) -> None:
    both = [outdated.start(), outdated.start()]

    said = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in both]

    assert [process.returncode for process in both] == [0, 0], said
    assert sorted("Installing" in text for text in said) == [False, True]


def test_pip_settings_of_the_user_do_not_break_it(outdated: Clone, tmp_path: Path) -> None:
    settings = tmp_path / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("[global]\nuser = true\nno-binary = :all:\n[install]\ntarget = /nowhere\n")
    outdated.environment |= {"HOME": str(tmp_path), "PIP_REQUIRE_VIRTUALENV": "no", "PIP_PREFIX": "/nowhere"}

    status, said = outdated.up()

    assert status == 0, said


def test_without_a_network_it_says_so_and_loses_nothing(outdated: Clone) -> None:
    del outdated.environment["PIP_NO_INDEX"], outdated.environment["PIP_FIND_LINKS"]
    outdated.require(outdated.next_digest, "2.0")
    outdated.environment |= {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}

    status, said = outdated.up()

    assert status == 1
    assert "the package index cannot be reached" in one_sentence(said)
    assert not (outdated.checkout / ".venv" / "unfinished").exists()


def test_a_package_that_is_not_the_pinned_one_is_refused(outdated: Clone) -> None:
    outdated.require("0" * 64, "2.0")

    status, said = outdated.up()

    assert status == 1
    assert "is not the one that the requirements pin" in one_sentence(said)
    assert outdated.up()[0] == 1


def test_a_start_that_was_killed_while_installing_is_made_good(clone: Clone) -> None:
    killed = clone.start()
    eventually((clone.checkout / ".venv" / "unfinished").exists)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()

    status, said = clone.up()

    assert status == 0, said
    assert "Removing a half-made virtual environment" in said


def test_a_python_that_is_too_old_is_named(clone: Clone) -> None:
    clone.python('[ "$1" = -V ] && echo Python 3.9.2 && exit; exit 1')

    status, said = clone.up()

    assert status == 1
    assert "Python 3.11, 3.12 or 3.13 is needed" in one_sentence(said)
    assert "python3 is Python 3.9.2" in said


def test_without_a_python_it_says_which_to_install(clone: Clone) -> None:
    (clone.path / "python3").unlink()

    status, said = clone.up()

    assert status == 1
    assert "no Python was found" in one_sentence(said)


def test_arguments_that_are_not_understood_are_refused_before_anything_is_installed(clone: Clone) -> None:
    refuses = "import os, sys; assert os.environ['OPENAGENTS_ONLY_ARGUMENTS']; print('bin/up: error: no', file=sys.stderr); sys.exit(2)"
    clone.checkout.joinpath("openagents_site/launcher/__main__.py").write_text(refuses)

    status, said = clone.up("--nonsense")

    assert (status, said) == (2, "bin/up: error: no\n")
    assert not clone.checkout.joinpath(".venv").exists()


def test_without_git_it_says_so(clone: Clone) -> None:
    (clone.path / "git").unlink()

    status, said = clone.up()

    assert status == 1
    assert "git is missing" in one_sentence(said)


def without_venv_module(clone: Clone) -> None:
    """A Python as Debian ships it, until the file `has-venv` is there."""
    block = "import sys, runpy; sys.modules['ensurepip'] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    clone.python(
        f"""
        [ -e '{clone.path}/has-venv' ] && exec "$REAL" "$@"
        [ "$2" = -c ] && case "$3" in *ensurepip*) exit 1 ;; *) exec "$REAL" "$@" ;; esac
        shift
        exec "$REAL" -I -c "{block}" "$@"
        """
    )


def test_without_the_venv_module_an_ordinary_user_is_told_the_command(clone: Clone) -> None:
    options = ordinary_user(clone)
    without_venv_module(clone)
    shutil.chown(clone.checkout, *([65534] * 2 if options else [os.getuid(), os.getgid()]))

    status, said = clone.up(**options)

    assert status == 1
    assert f"run `sudo apt-get install python3.{sys.version_info[1]}-venv`" in one_sentence(said)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_without_the_venv_module_root_installs_the_package(clone: Clone) -> None:
    without_venv_module(clone)
    clone.program(
        "apt-get",
        f'echo "$@" >> "{clone.path}/asked"; [ "$1" = update ] && : > "{clone.path}/has-venv"; [ -e "{clone.path}/has-venv" ]',
    )

    _, said = clone.up()

    package = f"python3.{sys.version_info[1]}-venv"
    assert (clone.path / "asked").read_text().splitlines() == [
        f"install -y {package}",
        "update",
        f"install -y {package}",
    ]
    assert "with apt-get" in said


def test_a_checkout_that_cannot_be_written_to_is_named(clone: Clone) -> None:
    options = ordinary_user(clone)
    clone.python('exec "$REAL" "$@"')
    clone.checkout.chmod(0o555)

    status, said = clone.up(**options)
    clone.checkout.chmod(0o755)

    assert status == 1
    assert f"{clone.checkout} cannot be written to" in one_sentence(said)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "the disk is full",
        ),
        ("ERROR: No matching distribution found for thing==9", "has no thing==9 for Python"),
        ("ERROR: something odd", "could not be installed (ERROR: something odd)"),
    ],
)
def test_what_pip_says_becomes_one_sentence(
    monkeypatch: pytest.MonkeyPatch, output: str, sentence: str
) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT / "bin" / "bootstrap"))
    from reasons import cause_of

    assert sentence in cause_of(output, "the packages could not be installed")
