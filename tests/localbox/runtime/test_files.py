"""Files of a box, read and written as its own user in its own view."""

from __future__ import annotations

import asyncio
import os
import stat

from localbox.runtime.interface import Limits

from .rig import IS_ROOT, Box, Rig, call


def test_it_reads_what_it_wrote(box: Box) -> None:
    for name in ("a.txt", "a b/é €/c.txt", ".hidden", "./x/../y", "/home/user/abs", "/tmp/t/u", "x" * 255):
        for content in (b"", b"text\n", bytes(range(256)) * 5000):
            place = box.write(name, content)

            assert box.read(name) == box.read(place) == content
            assert place.startswith(("/home/user/", "/tmp/"))


def test_it_shares_files_with_commands(box: Box) -> None:
    box.write("dir/in file", b"to the command")
    box.run('cp "dir/in file" out; echo temp > "$TMPDIR/t"')

    assert box.read("out") == b"to the command"
    assert box.read("/tmp/t") == b"temp\n"
    assert box.output("stat -c '%a %U' 'dir/in file' dir").splitlines()[0].startswith("644")
    assert box.output("id -u") == box.output("stat -c %u 'dir/in file'")


def test_it_takes_a_file_away_from_no_reader(box: Box) -> None:
    box.write("f", b"old content")
    reader = box.start("exec 3< f; touch ready; until test -e go; do sleep 0.02; done; cat <&3")
    box.run("until test -e ready; do sleep 0.02; done")

    box.write("f", b"new")
    box.run("touch go")

    assert box.wait(reader.process_id).stdout == b"old content"
    assert box.read("f") == b"new"
    assert box.output("ls -A | grep -c new$ || true") == "0"  # nothing half written is left


def test_it_keeps_the_mode_of_a_file_that_it_replaces(box: Box) -> None:
    box.run("echo '#!/bin/sh' > tool; chmod 750 tool")

    box.write("tool", b"#!/bin/sh\necho replaced\n")

    assert box.output("stat -c %a tool; ./tool") == "750\nreplaced"


def test_it_follows_links_that_stay_inside(box: Box) -> None:
    box.run('mkdir d; ln -s d link; ln -s "$TMPDIR" t; echo deep > d/f; ln -s "$HOME/d/f" absolute')

    assert box.read("link/f") == box.read("absolute") == b"deep\n"
    assert box.write("t/x", b"1") == "/tmp/x"
    assert box.write("absolute", b"2") == "/home/user/d/f"
    assert box.output("cat d/f; test -L absolute && echo still a link") == "2still a link"


HOSTILE = [
    "/etc/passwd", "../../etc/passwd", "/home/user/../../etc/passwd", "/tmp/../etc/passwd", "..", "/", "", "a\0b",
    "\ud800", "/proc/self/environ", "/home/userx", "/tmpx", "out/passwd", "chain/passwd", "up/boxes", "loop/x", "loop",
    "/proc/self/root/etc/passwd", "dots/../../../etc/passwd", "x/" * 3000, "self/etc/passwd",
]  # fmt: skip


def test_it_refuses_every_way_out(box: Box) -> None:
    box.run(
        "ln -s /etc out; ln -s out chain; ln -s ../.. up; ln -s loop loop; mkdir dots; ln -s /proc/self/root self"
    )

    for path in HOSTILE:
        assert (path, box.refusal(box.handle.read_file(path))) == (path, "invalid_path")
        assert (path, box.refusal(box.handle.write_file(path, b"x"))) == (path, "invalid_path")


def test_it_does_not_read_or_replace_what_is_no_file(box: Box) -> None:
    box.run("mkdir folder; mkfifo pipe; python3 -c 0; ln -s folder link")

    for path in ("folder", "pipe", "link", "/home/user", "/tmp"):
        assert box.refusal(box.handle.read_file(path)) == "invalid_path"
        assert box.refusal(box.handle.write_file(path, b"x")) == "invalid_path"


def test_it_says_what_is_missing_or_in_the_way(box: Box) -> None:
    box.write("file", b"x")

    assert box.refusal(box.handle.read_file("none")) == "not_found"
    assert box.refusal(box.handle.read_file("none/deeper")) == "not_found"
    assert box.refusal(box.handle.read_file("file/below")) == "invalid_path"
    assert box.refusal(box.handle.write_file("file/below", b"x")) == "invalid_path"
    assert box.refusal(box.handle.write_file("n" * 256, b"x")) == "invalid_path"


def test_it_writes_through_a_link_to_nothing_only_inside(box: Box) -> None:
    box.run("ln -s later dangling; ln -s /etc/later outside")

    assert box.write("dangling", b"now") == "/home/user/later"
    assert box.refusal(box.handle.write_file("outside", b"x")) == "invalid_path"


def test_it_has_a_ceiling_for_files(rig: Rig) -> None:
    box = rig.up(limits=Limits(file_bytes=1000))
    box.write("just", b"x" * 1000)
    box.run("truncate -s 1000 exact; for i in 1 2; do head -c 600 /dev/zero; done >> grown")

    assert len(box.read("just")) == 1000
    assert box.refusal(box.handle.write_file("more", b"x" * 1001)) == "file_too_large"
    assert box.refusal(box.handle.read_file("more")) == "not_found"


def test_it_does_not_read_more_than_the_ceiling(rig: Rig) -> None:
    spec = rig.spec()
    rig.up(spec).run("truncate -s 2000 big")
    small = rig.up(type(spec)(spec.box_id, spec.root, spec.uid, {}, Limits(file_bytes=1000)))

    assert small.refusal(small.handle.read_file("big")) == "file_too_large"


def test_it_says_that_there_is_no_room(bwrap_rig: Rig) -> None:
    box = bwrap_rig.up(limits=Limits(tmp_bytes=1 << 20))

    assert box.refusal(box.handle.write_file("/tmp/big", b"x" * (2 << 20))) == "file_too_large"
    assert box.output("ls -A /tmp") == ""
    assert box.write("/tmp/small", b"x") == "/tmp/small"


def test_it_measures_what_the_home_takes_on_disk(box: Box) -> None:
    empty = call(box.handle.disk_bytes())
    box.run("head -c 1000000 /dev/zero > a; ln a b; truncate -s 1G sparse; mkdir -p deep/er; cp a deep/er")

    assert 2_000_000 <= call(box.handle.disk_bytes()) - empty < 2_200_000


def test_it_makes_folders_that_are_the_boxs_alone(rig: Rig) -> None:
    box = rig.up()

    for name in ("", "home", "tmp", "run"):
        info = os.stat(box.spec.root / name)
        assert stat.S_IMODE(info.st_mode) == 0o700
        assert info.st_uid == (box.spec.uid if IS_ROOT and name != "run" else os.geteuid())


def test_it_moves_many_files_at_once(box: Box) -> None:
    async def move() -> list[bytes]:
        await asyncio.gather(*(box.handle.write_file(f"d/{n}", b"%d" % n * 10000) for n in range(40)))
        return [
            content
            for _, content in await asyncio.gather(*(box.handle.read_file(f"d/{n}") for n in range(40)))
        ]

    assert call(move()) == [b"%d" % n * 10000 for n in range(40)]
