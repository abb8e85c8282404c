"""What a box cannot see or touch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from localbox.runtime import launching
from localbox.runtime.supervisor import processes
from tests.waiting import eventually

from .rig import IS_ROOT, Rig, running

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture
def walled_rig(rig: Rig) -> Rig:
    """Boxes with walls: every kind but an ordinary user's plain one."""
    if rig.runtime.name == "plain" and not IS_ROOT:
        pytest.skip("plain boxes of an ordinary user are not walled off from each other")
    return rig


def test_it_keeps_boxes_out_of_each_others_files(walled_rig: Rig) -> None:
    box, neighbour = walled_rig.up(), walled_rig.up()
    neighbour.write("private", b"neighbour's")
    neighbour.run("chmod 777 . private")

    look = box.run(f"cat {neighbour.home}/private; ls {neighbour.spec.root}; touch {neighbour.home}/mine")

    assert (look.exit_code, look.stdout) == (1, b"")
    assert neighbour.output("ls") == "private"


def test_it_keeps_boxes_from_each_others_processes(walled_rig: Rig) -> None:
    box, neighbour = walled_rig.up(), walled_rig.up(env={"SECRET": "neighbour"})
    neighbour.start("exec sleep 81.8151")
    eventually(lambda: running("81.8151"))
    pid = running("81.8151")[0]

    look = box.run(
        f"kill -0 {pid}; cat /proc/{pid}/environ; kill -0 {neighbour.pid}; kill -0 {box.pid}; kill -0 {os.getpid()}"
    )

    assert look.exit_code != 0
    assert look.stdout == b""
    assert look.stderr.count(b"\n") == 5


def test_it_keeps_a_box_out_of_the_supervisors_folder(walled_rig: Rig) -> None:
    box = walled_rig.up()

    look = box.run(f"ls {box.spec.root}/run; cat {box.spec.root}/run/supervisor.json; ls /home/user/../run")

    assert look.stdout == b""
    assert look.exit_code != 0


def test_it_shows_a_box_nothing_of_the_provider(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()
    (bwrap_rig.state / "private").mkdir()

    environment = [] if sys.prefix == sys.base_prefix else [Path(sys.prefix)]
    for path in (bwrap_rig.state, box.spec.root, CHECKOUT, *environment, Path("/var/lib"), Path("/root")):
        assert box.run(f"ls {path}").exit_code != 0
    assert box.output("ls -A /home /tmp /run") == "/home:\nuser\n\n/run:\n\n/tmp:"


def test_it_shows_a_box_only_its_own_processes(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()

    seen = box.output("for each in /proc/[0-9]*; do cat $each/comm; done")

    assert seen.split() == ["bash", "bash"]  # the first process, and the one that looks


def test_it_shows_a_read_only_system(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()

    for path in ("/usr/bin/x", "/etc/x", "/x", "/home/x", "/dev/x", "/run/x", "/var/x"):
        assert box.run(f"touch {path}").exit_code == 1
    assert (
        box.run("chmod 777 / /etc; mount -t tmpfs none /usr; umount /etc; rm -rf /usr/bin/env").exit_code != 0
    )
    assert Path("/usr/bin/env").exists()


def test_it_shows_the_box_as_a_user_with_a_name(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()

    assert box.output("whoami; id -un; id -gn; echo ~user; hostname") == "user\nuser\nuser\n/home/user\nbox"


def test_it_has_what_programs_expect_of_a_machine(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()

    assert (
        box.output("head -c 3 /dev/zero | wc -c; echo x > /dev/null; head -c 1 /dev/urandom | wc -c")
        == "3\n1"
    )
    assert (
        box.output("cat <(echo substitution); ls -d /var/tmp/; test -w /dev/shm && echo shm")
        == "substitution\n/var/tmp/\nshm"
    )
    assert box.output("stat -c %a /tmp") == "1777"


def test_it_has_terminals(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up()

    assert box.output("test -c /dev/ptmx && test -d /dev/pts && test -c /dev/tty && echo yes") == "yes"
    assert box.run("script -qec 'tty' /dev/null").stdout.startswith(b"/dev/pts/")


def test_it_hides_the_providers_own_folders_in_the_system(
    bwrap_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Path("/usr/share/doc")
    monkeypatch.setattr(launching, "_CODE_ROOT", shown)
    spec = bwrap_rig.spec()

    assert shown in launching._hidden(spec.root)
    assert Path("/usr") not in launching._hidden(Path("/usr/boxes/one"))
    assert Path("/usr/boxes") in launching._hidden(Path("/usr/boxes/one"))


def test_it_hides_what_in_etc_only_the_provider_may_read(bwrap_rig: Rig, tmp_path: Path) -> None:
    from localbox.runtime.supervisor import mounts

    for name, mode in (("open", 0o644), ("secret", 0o600)):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(mode)
    for name, mode in (("folder", 0o755), ("closed", 0o700)):
        (tmp_path / name).mkdir(mode=mode)
        (tmp_path / name / "inner").write_text("x")
        (tmp_path / name / "inner").chmod(0o640)

    found = mounts._private(str(tmp_path))

    assert sorted(found) == [
        (f"{tmp_path}/closed", True),
        (f"{tmp_path}/folder/inner", False),
        (f"{tmp_path}/secret", False),
    ]
    assert bwrap_rig.up().run("cat /etc/shadow").exit_code == 1


def test_it_follows_nothing_that_a_box_puts_in_its_homes_place(plain_rig: Rig) -> None:
    box = plain_rig.up()
    mode = os.stat("/etc").st_mode
    box.run('cd /; mv "$HOME" "$HOME.old"; ln -s /etc "$HOME"; rm -r "$TMPDIR"; touch "$TMPDIR"')
    box.stop()

    again = plain_rig.up(box.spec)

    assert again.output("ls -A; ls -A $TMPDIR") == ""
    assert os.stat("/etc").st_mode == mode


def test_it_gives_an_ended_box_no_hold_on_the_supervisors_folder(plain_rig: Rig) -> None:
    box = plain_rig.up()
    box.run('mv "$HOME/../run" "$HOME/../old"; ln -s /etc "$HOME/../run"')
    box.stop()

    again = plain_rig.up(box.spec)

    assert again.output("echo fine") == "fine"
    assert not (box.spec.root / "run").is_symlink()
    assert not Path("/etc/supervisor.json").exists()
    assert processes.lives(again.pid)
