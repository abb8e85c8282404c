"""The small rules of the launcher."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.state_root import StateRoot, site_url
from openagents_site.launcher import plan, ports, procfile
from openagents_site.launcher.backoff import Backoff
from openagents_site.launcher.guide import curl_lines
from openagents_site.launcher.hold import Hold
from openagents_site.launcher.identity import Group, Identity
from openagents_site.launcher.logs import Lines, LogFile
from openagents_site.launcher.options import parse_test, parse_up
from openagents_site.launcher.up import unexpected_ports


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on, with a free one after it."""
    for _ in range(50):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            port = server.getsockname()[1]
            if port < ports.HIGHEST_PORT and ports.is_free(port + 1):
                yield port
                return
    pytest.fail("no two ports in a row are free")


def test_it_takes_the_next_free_port(taken: int) -> None:
    reserved = ports.choose(None, taken, "site", "WEB_PORT")

    assert reserved.port > taken
    reserved.release()


def test_two_starts_at_once_do_not_choose_the_same_port(taken: int) -> None:
    first = ports.choose(None, taken + 1, "site", "WEB_PORT")

    second = ports.choose(None, taken + 1, "site", "WEB_PORT")

    assert first.port == taken + 1
    assert second.port > first.port
    first.release()
    second.release()


def test_it_refuses_a_taken_port_that_was_asked_for(taken: int) -> None:
    with pytest.raises(ports.PortTaken, match=rf"Port {taken} \(WEB_PORT\) is taken"):
        ports.choose(str(taken), 8000, "site", "WEB_PORT")


@pytest.mark.parametrize("asked", ["0", "65536", "-1", "http", " 80", "8e3"])
def test_it_refuses_what_is_no_port(asked: str) -> None:
    with pytest.raises(ports.PortTaken, match="must be a port number"):
        ports.choose(asked, 8000, "site", "WEB_PORT")


def test_it_reads_a_procfile(tmp_path: Path) -> None:
    (tmp_path / "Procfile").write_text("# what runs\n\nweb: serve --port $PORT\nworker:  work: hard \n")

    entries = procfile.read(tmp_path / "Procfile")

    assert [(entry.name, entry.command) for entry in entries] == [
        ("web", "serve --port $PORT"),
        ("worker", "work: hard"),
    ]


@pytest.mark.parametrize("text", ["web serve\n", "web:\n", "Web: serve\n", "web: a\nweb: b\n"])
def test_it_refuses_a_bad_line_of_a_procfile_by_number(tmp_path: Path, text: str) -> None:
    (tmp_path / "Procfile").write_text(text)

    with pytest.raises(procfile.ProcfileError, match=r"Procfile, line \d"):
        procfile.read(tmp_path / "Procfile")


def test_our_own_procfile_has_the_four_processes() -> None:
    names = [entry.name for entry in procfile.read(plan.CHECKOUT / "Procfile")]

    assert names == ["web", "scheduler", "worker", "provider"]


def test_backoff_grows_to_its_limit_and_starts_anew_after_a_healthy_stretch() -> None:
    backoff = Backoff()

    waits = [backoff.after_end(1.0) for _ in range(9)]

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert backoff.after_end(31.0) == 0.1


def test_lines_are_put_together_from_pieces() -> None:
    lines = Lines()

    assert lines.feed(b"one\r\ntw") == ["one"]
    assert lines.feed(b"o\n\xff") == ["two"]
    assert lines.feed(b"") == ["\N{REPLACEMENT CHARACTER}"]


def test_a_line_without_end_is_written_in_pieces() -> None:
    assert [len(line) for line in Lines().feed(b"x" * 70_000)] == [70_000]


def test_a_log_is_private_and_its_size_is_bounded(tmp_path: Path) -> None:
    log = LogFile(tmp_path, "web", file_bytes=1000)

    for _ in range(100):
        log.write_line("x" * 99)
    log.close()

    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["web.log", "web.log.1", "web.log.2", "web.log.3", "web.log.4"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 1000


def test_one_start_holds_the_state_folder_and_says_where_it_is(tmp_path: Path) -> None:
    first, second = Hold(tmp_path), Hold(tmp_path)
    first.take()

    before = second.take(), second.holder()
    first.announce("http://127.0.0.1:8000")

    assert before == (False, (0, ""))
    assert second.holder() == (os.getpid(), "http://127.0.0.1:8000")
    first.release()
    assert second.take()


def test_a_recorded_pid_that_became_another_process_is_a_stranger() -> None:
    me = Identity.of(os.getpid())
    assert me is not None
    stranger = Identity(me.pid, me.started - 1, me.boot)
    rebooted = Identity(me.pid, me.started, "another boot")

    assert me.is_alive()
    assert not stranger.is_alive()
    assert Group(stranger, "mark").members() == []
    assert Group(rebooted, "mark").members() == []


def test_the_provider_is_given_no_secret_but_its_own_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = StateRoot(tmp_path)
    monkeypatch.setenv("SECRET_KEY", "s" * 50)
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@h/d")

    made = plan.make(state, None)
    assert made.provider is not None

    provider, worker = made.environment_of("provider"), made.environment_of("worker")
    assert not {"SECRET_KEY", "DATABASE_URL", "BOX_API_KEY"} & set(provider)
    assert provider["LOCALBOX_KEY"] == worker["BOX_API_KEY"]
    assert "LOCALBOX_KEY" not in worker
    made.web.release()
    made.provider.release()


def test_a_start_records_where_it_is_and_says_which_port_was_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taken: int
) -> None:
    monkeypatch.delenv("PUBLIC_BASE_URL", raising=False)
    monkeypatch.setattr(plan, "WEB_PORT", taken)
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setenv("LOCALBOX_PORT", str(free.getsockname()[1]))

    made = plan.make(StateRoot(tmp_path), None)

    assert site_url(tmp_path) == made.public_url == f"http://127.0.0.1:{made.web_port}"
    assert unexpected_ports(made) == [
        f"Port {taken} is taken by another program: the site listens on port {made.web_port}."
    ]
    made.web.release()
    assert made.provider is not None
    made.provider.release()


def test_a_provider_of_ones_own_replaces_the_embedded_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = StateRoot(tmp_path)
    monkeypatch.setenv("BOX_API_KEY", "k")
    with pytest.raises(plan.PlanError, match="BOX_API_KEY is set and BOX_API_BASE_URL is not"):
        plan.make(state, None)

    monkeypatch.setenv("BOX_API_BASE_URL", "https://provider.example.org")

    made = plan.make(state, None)

    assert [entry.name for entry in made.entries()] == ["web", "scheduler", "worker"]
    made.web.release()


def test_curl_lines_hold_no_token_and_quote_the_path(tmp_path: Path) -> None:
    lines = curl_lines("http://127.0.0.1:8000", tmp_path / "a folder" / "api_header")

    assert len(lines) == 3
    assert all(f"-H @'{tmp_path}/a folder/api_header'" in line for line in lines)


def test_options_of_up() -> None:
    options = parse_up(["--once", "--port", "8080"])

    assert (options.once, options.demo, options.port) == (True, True, "8080")
    with pytest.raises(SystemExit):
        parse_up(["--once", "--no-demo"])


def test_options_of_test_pass_on_what_is_not_theirs() -> None:
    options = parse_test(["--all", "tests/runs", "-k", "cancel", "-x"])

    assert (options.everything, options.pytest) == (True, ["tests/runs", "-k", "cancel", "-x"])
    with pytest.raises(SystemExit):
        parse_test(["--lint", "tests/runs"])
