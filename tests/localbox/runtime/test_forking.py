"""Copying the files of a box for a new one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localbox.runtime.interface import RuntimeFault

from .rig import IS_ROOT, Box, Rig, call


def _fork(rig: Rig, box: Box) -> Box:
    target = rig.spec()
    call(rig.runtime.copy_home(box.spec, target))
    return rig.up(target)


def test_it_copies_everything_and_gives_it_to_the_new_box(rig: Rig) -> None:
    box = rig.up()
    box.run(
        "mkdir -p a/b; echo text > 'a/b/f é'; printf '#!/bin/sh\\necho ran' > tool; chmod 755 tool; chmod 500 a/b"
    )
    box.run("ln -s a/b/f* link; ln -s /nowhere dangling; mkfifo pipe; touch -d 2001-02-03 old; ln tool tool2")

    fork = _fork(rig, box)

    assert fork.output("cat a/b/*; ./tool; readlink link dangling") == "text\nran\na/b/f é\n/nowhere"
    assert fork.output("date -r old +%F; stat -c '%a %h' tool a/b") == "2001-02-03\n755 2\n500 2"
    assert fork.output("test -p pipe && echo mine > new && find . ! -user $(id -u)") == ""


def test_it_keeps_the_two_apart_afterwards(rig: Rig) -> None:
    box = rig.up()
    box.run("echo first > f; echo first > g; ln g h")

    fork = _fork(rig, box)
    fork.run("echo second > f; echo second > g")

    assert box.output("cat f g") == "first\nfirst"
    assert fork.output("cat f h") == "second\nsecond"


def test_it_copies_holes_as_holes(rig: Rig) -> None:
    box = rig.up()
    box.run("truncate -s 900M sparse; echo end >> sparse; truncate -s 1G empty")

    fork = _fork(rig, box)

    assert fork.output("stat -c %s sparse empty; tail -c 4 sparse") == f"{(900 << 20) + 4}\n{1 << 30}\nend"
    assert os.stat(fork.home / "sparse").st_blocks * 512 < 1 << 20


def test_it_copies_from_a_box_at_work(rig: Rig) -> None:
    box = rig.up()
    box.start(
        "i=0; while :; do i=$((i+1)); echo $i > f$((i%50)); rm -f f$(((i+25)%50)); mkdir -p d/$((i%9)); rmdir d/$(((i+4)%9)); done 2>/dev/null"
    )
    box.write("stable", b"kept")

    for _ in range(5):
        assert _fork(rig, box).read("stable") == b"kept"


def test_it_starts_the_count_of_commands_anew(rig: Rig) -> None:
    box = rig.up()
    box.start("echo of the first")
    box.wait(1)
    box.run("mkdir .openagents/box-runs; echo kept > .openagents/box-runs/f")

    fork = _fork(rig, box)

    assert fork.refusal(fork.handle.detached_status(1, tail_bytes=1)) == "not_found"
    assert fork.output("ls .openagents; cat .openagents/box-runs/f") == "box-runs\nkept"
    assert fork.start("echo of the fork").process_id == 1
    assert fork.wait(1).stdout == b"of the fork\n"


def test_it_copies_links_without_following_them(rig: Rig) -> None:
    box = rig.up()
    box.run("ln -s /etc/shadow shadow; ln -s /root folder; ln -s / everything; ln -s . itself")

    fork = _fork(rig, box)

    assert (fork.home / "shadow").is_symlink()
    assert (fork.home / "everything").is_symlink()
    assert fork.output("readlink folder") == "/root"


def test_it_does_not_copy_what_is_not_the_boxs(rig: Rig, tmp_path: Path) -> None:
    if not IS_ROOT:
        pytest.skip("an ordinary user has no files of another's to link to")
    box = rig.up()
    secret = box.spec.root.parent / "secret"
    secret.write_text("root's")
    os.link(secret, box.home / "linked")

    fork = _fork(rig, box)

    assert not (fork.home / "linked").exists()


def test_it_says_that_a_copy_failed(rig: Rig) -> None:
    box = rig.up()
    target = rig.spec()
    rig.up(target).stop()
    (target.root / "home" / "taken").mkdir()
    box.write("taken", b"a file where the target has a folder")

    with pytest.raises(RuntimeFault) as caught:
        call(rig.runtime.copy_home(box.spec, target))

    assert caught.value.code == "fork_failed"
