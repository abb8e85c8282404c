"""A dispatch on a real shell: what starts, once, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runs.replies import parse_dispatch
from runs.scripts import GitCredential, dispatch_script
from tests.runs.scripts.conftest import ScriptBox, link_tools, read_if_there
from tests.waiting import eventually

TOOLS = (
    "mkdir",
    "mv",
    "rm",
    "chmod",
    "base64",
    "sh",
    "ls",
    "dd",
    "tail",
    "head",
    "tr",
    "sleep",
    "grep",
    "sed",
    "sort",
)
CREDENTIAL = GitCredential("https://forge.example:8443", "oa_assignment_1.aB-3_xyz'\"$HOME%")


def test_it_prints_the_pid_of_the_commands_shell_as_its_last_line(box: ScriptBox) -> None:
    reply = box.dispatch("echo $$; sleep 30")

    eventually(lambda: (box.folder / "output.log").read_text().strip())
    assert (box.folder / "output.log").read_text() == f"{reply.pid}\n"
    assert (box.folder / "pid").read_text().splitlines()[0] == str(reply.pid)


def test_it_runs_in_the_providers_folder_with_its_umask_and_a_closed_input(box: ScriptBox) -> None:
    _, output = box.ends('pwd; umask; cat; echo "[$OPENAGENTS_RUN_DIRECTORY]"')

    assert output.decode().splitlines() == [str(box.home), "0022", f"[{box.folder}]"]


def test_it_starts_the_command_in_a_session_of_its_own(box: ScriptBox) -> None:
    reply = box.dispatch("sleep 30")

    assert reply.pid
    eventually(lambda: os.getsid(reply.pid or 0) == os.getpgid(reply.pid or 0) == reply.pid)


def test_it_keeps_the_run_directory_to_its_user(box: ScriptBox) -> None:
    box.ends("true")

    assert box.folder.stat().st_mode & 0o777 == 0o700
    assert (box.folder / "script.sh").stat().st_mode & 0o777 == 0o700
    assert (box.folder / "output.log").stat().st_mode & 0o777 == 0o600


def test_a_second_dispatch_meets_the_directory_and_runs_nothing(box: ScriptBox) -> None:
    script = dispatch_script(box.run_directory, "echo once >> counter", credential=None)
    first = box.run(script)
    box.wait_for_end()

    second = box.run(script)

    assert parse_dispatch(first.stdout.decode()).pid
    assert (second.returncode, second.stdout) == (73, b"OPENAGENTS_RUN_EXISTS\n")
    assert parse_dispatch(second.stdout.decode()).exists
    assert (box.home / "counter").read_text() == "once\n"


def test_dispatches_at_the_same_moment_run_once(dash_box: ScriptBox) -> None:
    script = dispatch_script(dash_box.run_directory, "echo once >> counter", credential=None)

    answers = [process.communicate()[0].decode() for process in [dash_box.start(script) for _ in range(8)]]
    dash_box.wait_for_end()

    assert sum(bool(parse_dispatch(answer).pid) for answer in answers) == 1
    assert (dash_box.home / "counter").read_text() == "once\n"


HOSTILE = {
    "quotes": (
        r"""printf '%s\n' "a'b" 'c"d' "\`e\`" '$(f)' "$((1+1))" '!x' """,
        "a'b\nc\"d\n`e`\n$(f)\n2\n!x\n",
    ),
    "here document": ("cat <<'EOF'\n$HOME `x` 'y' \\\nEOF\n", "$HOME `x` 'y' \\\n"),
    "trailing backslash": ("echo end\\", None),
    "carriage return": ("printf 'a\rb\\n'", "a\rb\n"),
    "no newline at the end": ("printf x", "x"),
    "unicode": ("echo '日本🙂é'", "日本🙂é\n"),
    "control characters": ("printf '%s' '\x01\x02\x1b[31m\x7f'", "\x01\x02\x1b[31m\x7f"),
    "looks like our own lines": (
        "echo OA_EXIT=0; echo OPENAGENTS_RUN_EXISTS",
        "OA_EXIT=0\nOPENAGENTS_RUN_EXISTS\n",
    ),
    "closes its quote": ("' ; touch pwned; '", None),
    "8,000 bytes": ("echo " + "x" * 7_995, "x" * 7_995 + "\n"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_command_arrives_byte_for_byte(box: ScriptBox, name: str) -> None:
    command, expected = HOSTILE[name]

    _, output = box.ends(command)

    assert (box.folder / "script.sh").read_bytes() == command.encode()
    assert expected is None or output.decode() == expected
    assert not (box.home / "pwned").exists()


def test_a_command_may_name_its_interpreter(dash_box: ScriptBox) -> None:
    _, output = dash_box.ends("#!/usr/bin/perl\nprint 'perl', $] > 5 ? '!' : '?';\n")

    assert output == b"perl!"


def test_it_runs_bash_where_there_is_one(dash_box: ScriptBox) -> None:
    _, output = dash_box.ends('a=(1 2 3); echo "${a[2]}"')

    assert output == b"3\n"


def test_a_path_with_special_characters_is_one_folder(box: ScriptBox) -> None:
    box.run_directory = "$HOME/with space/$(touch pwned)/`id`/\"q\"/back\\slash/'s'"

    box.ends("true")

    assert (box.folder / "exit-code").exists()
    assert not (box.home / "pwned").exists()


def test_an_absolute_path_needs_no_home(dash_box: ScriptBox) -> None:
    dash_box.run_directory = str(dash_box.home / "absolute")

    assert "$HOME" not in dispatch_script(dash_box.run_directory, "true", credential=None).split("set -u")[0]
    assert dash_box.dispatch("true").pid


@pytest.mark.parametrize(
    "path", ["", "$HOME/", "/", "relative/x", "$HOME/../x", "/a\nb", "/a\0b", "$HOMEX/a", "~/a"]
)
def test_a_path_that_could_mean_something_else_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="run directory"):
        dispatch_script(path, "true", credential=None)


class TestCredential:
    def git(self, box: ScriptBox, *lines: str, action: str = "fill") -> str:
        asked = "".join(f"{line}\\n" for line in lines)
        command = f"printf '{asked}' | git credential {action}; echo done"
        box.text(dispatch_script(box.run_directory, command, credential=CREDENTIAL))
        return box.wait_for_end()[1].decode()

    def test_git_finds_the_credential_for_our_host(self, dash_box: ScriptBox) -> None:
        answer = self.git(dash_box, "protocol=https", "host=forge.example:8443")

        assert f"username=x\npassword={CREDENTIAL.secret}\n" in answer

    def test_git_does_not_offer_it_to_another_host(self, dash_box: ScriptBox) -> None:
        answer = self.git(dash_box, "protocol=https", "host=elsewhere.example")

        assert CREDENTIAL.secret not in answer

    def test_the_persons_own_configuration_stays_in_force(self, dash_box: ScriptBox) -> None:
        (dash_box.home / ".gitconfig").write_text(
            "[user]\n\tname = Someone\n[credential]\n\thelper = store\n"
        )
        dash_box.text(dispatch_script(dash_box.run_directory, "git config user.name", credential=CREDENTIAL))

        assert dash_box.wait_for_end()[1] == b"Someone\n"

    def test_another_helper_of_the_person_never_gets_to_keep_it(self, dash_box: ScriptBox) -> None:
        (dash_box.home / ".gitconfig").write_text("[credential]\n\thelper = store\n")

        self.git(
            dash_box,
            "protocol=https",
            "host=forge.example:8443",
            "username=x",
            "password=kept",
            action="approve",
        )

        assert not (dash_box.home / ".git-credentials").exists()

    def test_its_files_are_for_the_user_alone_and_gone_at_the_end(self, box: ScriptBox) -> None:
        command = 'stat -c \'%a %n\' "$OPENAGENTS_RUN_DIRECTORY"/forge-credential "$OPENAGENTS_RUN_DIRECTORY"/gitconfig'
        box.text(dispatch_script(box.run_directory, command, credential=CREDENTIAL))

        _, output = box.wait_for_end()

        assert [line.split()[0] for line in output.splitlines()] == [b"600", b"600"]
        assert not {"forge-credential", "gitconfig"} & set(box.files())

    def test_it_is_in_no_argument_and_no_environment_of_a_living_process(self, box: ScriptBox) -> None:
        box.text(dispatch_script(box.run_directory, "sleep 30 & sleep 30; wait", credential=CREDENTIAL))

        eventually(lambda: self.seen(box).count(b"sleep") >= 2)
        seen = self.seen(box)

        assert b"oa_assignment" not in seen
        assert CREDENTIAL.store_line[:40] not in seen

    @staticmethod
    def seen(box: ScriptBox) -> bytes:
        files = [f"/proc/{pid}/{name}" for pid in box.processes() for name in ("cmdline", "environ")]
        return b"".join(read_if_there(Path(name)) for name in files)

    def test_its_secret_is_not_in_its_repr(self) -> None:
        assert CREDENTIAL.secret not in repr(CREDENTIAL)

    @pytest.mark.parametrize(
        "origin", ["forge.example", "https://u:p@forge.example", "https://forge.example/path", "ssh://forge"]
    )
    def test_an_origin_that_git_would_never_match_is_refused(self, origin: str) -> None:
        with pytest.raises(ValueError, match="origin"):
            GitCredential(origin, "secret")


class TestFailure:
    def fails(self, box: ScriptBox, command: str = "touch ran") -> subprocess.CompletedProcess[bytes]:
        done = box.run(dispatch_script(box.run_directory, command, credential=CREDENTIAL))
        assert done.returncode in (69, 74), done
        assert done.stderr
        assert not (box.home / "ran").exists()
        return done

    @pytest.mark.parametrize("tool", ["mkdir", "mv", "rm", "chmod", "base64", "sh", "ls"])
    def test_a_missing_tool_is_named(self, dash_box: ScriptBox, tool: str, tmp_path: Path) -> None:
        tools = {"mkdir", "mv", "rm", "chmod", "base64", "sh", "ls"} - {tool}
        dash_box.path = link_tools(tmp_path / "tools", *tools)

        done = self.fails(dash_box)

        assert parse_dispatch(done.stdout.decode()).error == f"missing_tool:{tool}"
        assert tool.encode() in done.stderr

    def test_a_missing_home_is_named(self, box: ScriptBox) -> None:
        done = box.run("unset HOME\n" + dispatch_script(box.run_directory, "true", credential=None))

        assert parse_dispatch(done.stdout.decode()).error == "home_missing"

    def test_a_home_that_cannot_be_written_is_an_error_and_no_exists(self, box: ScriptBox) -> None:
        (box.home / ".openagents").write_text("a file in the way")

        assert parse_dispatch(self.fails(box).stdout.decode()).error == "cannot_create_directory"

    def test_a_read_only_home_is_an_error_and_no_exists(self, dash_box: ScriptBox) -> None:
        parent = dash_box.folder.parent
        parent.mkdir(parents=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", parent], capture_output=True)
        if mounted.returncode:
            pytest.skip("mounting needs root")
        try:
            assert parse_dispatch(self.fails(dash_box).stdout.decode()).error == "cannot_create_directory"
        finally:
            subprocess.run(["umount", parent], check=True)

    @pytest.mark.parametrize("room", [4096, 8192, 12288, 16384, 20480])
    def test_a_full_disk_starts_nothing_or_everything(self, box: ScriptBox, room: int) -> None:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={room},mode=1777", "none", box.home], capture_output=True
        )
        if mounted.returncode:
            pytest.skip("mounting needs root")
        try:
            done = box.run(dispatch_script(box.run_directory, "echo ran", credential=CREDENTIAL))
            reply = parse_dispatch(done.stdout.decode())
            if reply.pid:
                end, _ = box.wait_for_end()
                assert end.exit
                assert end.exit.status == 0
            else:
                assert reply.error in ("cannot_write", "not_started", "cannot_create_directory")
                assert not box.probe().present
                assert CREDENTIAL.store_line not in b"".join(
                    path.read_bytes() for path in box.home.rglob("*") if path.is_file()
                )
        finally:
            subprocess.run(["umount", "-l", box.home], check=True)

    @pytest.mark.parametrize("tool", ["perl", "python3", None])
    def test_without_setsid_it_still_runs(
        self, dash_box: ScriptBox, tool: str | None, tmp_path: Path
    ) -> None:
        dash_box.path = link_tools(tmp_path / "tools", *TOOLS)
        if tool:
            (tmp_path / "tools" / tool).symlink_to(
                "/usr/bin/perl" if tool == "perl" else os.path.realpath(sys.executable)
            )

        reply, output = dash_box.ends("echo hello; exit 7")

        assert output == b"hello\n"
        assert reply.exit
        assert reply.exit.status == 7

    @pytest.mark.parametrize("tool", ["setsid", "perl", "python3"])
    def test_the_command_starts_with_every_signal_in_force(
        self, dash_box: ScriptBox, tool: str, tmp_path: Path
    ) -> None:
        dash_box.path = link_tools(tmp_path / "tools", *TOOLS)
        found = {
            "setsid": "/usr/bin/setsid",
            "perl": "/usr/bin/perl",
            "python3": os.path.realpath(sys.executable),
        }
        (tmp_path / "tools" / tool).symlink_to(found[tool])

        _, output = dash_box.ends("grep SigIgn /proc/$$/status")

        assert output.split() == [b"SigIgn:", b"0" * 16]

    def test_a_run_without_any_session_tool_can_be_killed(self, dash_box: ScriptBox, tmp_path: Path) -> None:
        dash_box.path = link_tools(tmp_path / "tools", *TOOLS)
        dash_box.dispatch("sleep 600 & sleep 600")

        assert dash_box.kill(grace_seconds=1).cancelled
        assert not dash_box.processes()
