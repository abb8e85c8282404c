"""A prompt in, changes in the folder, a report out: every process is real, and each is killed in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connector.conftest import Connector, lives
from tests.faults.installation import Installation
from tests.waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.django_db, pytest.mark.timeout(600)]


def test_a_prompt_goes_in_changes_are_made_and_a_report_comes_out(connector: Connector) -> None:
    job = connector.delegate(
        "say Looking at it.\n",
        "write notes/plan.txt the plan",
        "tool completed Read",
        "tool failed Run tests",
        "say Done.",
    )

    done = connector.end_of(job)

    assert (connector.root / "notes/plan.txt").read_text() == "the plan"
    assert (done["status"], done["error_code"]) == ("completed", None)
    assert done["report"].startswith(f"Delegation to echo on {connector.machine['name']} — completed.")
    assert "Session: echo-" in done["report"]
    assert "Done." in done["report"]
    assert "- Run tests" in done["report"]
    assert done["report"].endswith("2 tool calls.")
    eventually(lambda: connector.journal("select count(*) from delegations") == [(0,)])


def test_it_can_be_watched_while_it_runs(connector: Connector) -> None:
    job = connector.delegate("say halfway there", "wait go", "say !")

    eventually(lambda: connector.job(job)["report"] == "halfway there")
    running = connector.job(job)
    assert running["status"] == "running"
    assert running["delegation"]["on_machine"]["session_id"].startswith("echo-")
    (connector.root / "go").touch()

    assert connector.end_of(job)["status"] == "completed"


def test_a_cancelled_one_ends_at_once_with_every_process_it_had(connector: Connector) -> None:
    job = connector.delegate("spawn daemon", "say started", "wait never")
    daemon = int(connector.await_file("daemon"))
    eventually(lambda: connector.job(job)["report"] == "started")

    connector.api.insist("POST", f"jobs/{job['id']}/cancel")

    done = connector.end_of(job)
    assert (done["status"], done["error_code"]) == ("cancelled", "cancelled")
    assert "was cancelled" in done["report"]
    assert "started" in done["report"]
    eventually(lambda: [process.pid for process in connector.processes()] == [connector.process.pid])
    assert not lives(daemon)


def test_the_connector_is_killed_in_the_middle_and_goes_on_where_it_was(connector: Connector) -> None:
    job = connector.delegate(
        "append log one", "append log two", "wait go", "append log three", "say all three"
    )
    connector.await_done(2)
    session = connector.journal("select session_id from delegations")

    connector.kill9()
    connector.start()
    eventually(lambda: "delegation_resumed" in connector.log and connector.log.count("agent_started") == 2)
    (connector.root / "go").touch()

    done = connector.end_of(job)
    assert (done["status"], (connector.root / "log").read_text()) == ("completed", "one\ntwo\nthree\n")
    assert f"Session: {session[0][0]}" in done["report"]
    assert "what was said before" not in done["report"]
    assert len([process for process in connector.processes() if process.pid != connector.process.pid]) == 0


def test_web_and_worker_are_killed_in_the_middle_and_nothing_is_lost(
    connector: Connector, installation: Installation
) -> None:
    job = connector.delegate(
        "append log one", "say first. ", "wait go", "append log two", "say second.", "wait web"
    )
    eventually(lambda: connector.job(job)["report"] == "first. ")

    for part in installation.parts.values():
        part.kill9()
    (connector.root / "go").touch()
    eventually(lambda: (connector.root / "log").read_text() == "one\ntwo\n")
    (connector.root / "web").touch()
    eventually(lambda: connector.journal("select count(*) from outbox where kind = 'result'") == [(1,)])
    for part in installation.parts.values():
        part.ensure()

    done = connector.end_of(job)
    assert (done["status"], (connector.root / "log").read_text()) == ("completed", "one\ntwo\n")
    assert "first. second." in done["report"]


@pytest.mark.parametrize("point", ["delegations.offered", "jobs.claimed"])
def test_a_worker_that_dies_at_the_offer_makes_no_second_one(
    connector: Connector, installation: Installation, point: str
) -> None:
    installation.parts["worker"].stop()
    killed = installation.add_worker("killed", FAULT_POINTS=f"{point}=kill")

    job = connector.delegate("append log once")
    eventually(lambda: not killed.is_running)
    installation.add_worker("next")

    assert connector.end_of(job)["status"] == "completed"
    assert (connector.root / "log").read_text() == "once\n"


@pytest.mark.parametrize("point", ["channel.frame_taken", "jobs.finishing", "jobs.finished"])
def test_web_that_dies_while_it_hears_the_machine_takes_nothing_twice(
    connector: Connector, installation: Installation, point: str
) -> None:
    job = connector.delegate("wait go", "append log once", "say words")
    connector.await_session(job)
    installation.parts["web"].kill9()
    # Its supervisor starts another process when one is killed; that one dies in the same way.
    faulty = installation.add_web(WEB_THREADS="8", FAULT_POINTS=f"{point}=kill")
    (connector.root / "go").touch()
    eventually(lambda: "was sent SIGKILL" in faulty.said())
    faulty.kill9()
    installation.add_web(WEB_THREADS="32")

    done = connector.end_of(job)
    assert (done["status"], (connector.root / "log").read_text()) == ("completed", "once\n")
    assert done["report"].count("words") == 1


def test_a_connector_whose_memory_is_lost_is_given_its_work_again(connector: Connector) -> None:
    job = connector.delegate("append log one", "wait go", "append log two")
    connector.await_session(job)
    connector.await_done(1)

    connector.kill9()
    for file in connector.state.glob("journal*"):
        file.unlink()
    connector.start()
    eventually(lambda: connector.job(job)["delegation"]["on_machine"]["attempt"] == 2)
    (connector.root / "go").touch()

    assert connector.end_of(job)["status"] == "completed"
    assert (connector.root / "log").read_text() == "one\ntwo\n"


def test_an_agent_that_dies_is_an_honest_failure(connector: Connector) -> None:
    done = connector.end_of(connector.delegate("say before", "exit 3"))

    assert (done["status"], done["error_code"]) == ("failed", "agent_exited")
    assert "exit code 3" in done["report"]
    assert "before" in done["report"]


def test_one_that_takes_too_long_is_stopped(connector: Connector) -> None:
    done = connector.end_of(connector.delegate("say begun", "wait never", timeout_ms=3000))

    assert (done["status"], done["error_code"]) == ("failed", "timeout")
    eventually(lambda: len(connector.processes()) == 1)


def test_an_agent_that_refuses_is_told_as_that(connector: Connector) -> None:
    done = connector.end_of(connector.delegate("refuse"))

    assert (done["status"], done["error_code"]) == ("failed", "refused")


def test_it_stops_when_it_is_asked_to_and_goes_on_after_that(connector: Connector) -> None:
    job = connector.delegate("append log one", "wait go", "append log two")
    connector.await_done(1)

    assert connector.stop() == 0
    assert connector.processes() == []
    assert connector.api("GET", f"machines/{connector.machine['id']}").json()["online"] is False
    assert connector.job(job)["status"] == "running"
    (connector.root / "go").touch()
    connector.start()

    assert connector.end_of(job)["status"] == "completed"
    assert (connector.root / "log").read_text() == "one\ntwo\n"


def test_a_revoked_machine_stops_at_its_next_request(connector: Connector) -> None:
    job = connector.delegate("wait never")
    connector.await_session(job)

    assert connector.api("DELETE", f"machines/{connector.machine['id']}").status_code == 204

    assert connector.process.wait(60) == 3
    assert "pair it again" in connector.log
    eventually(lambda: connector.processes() == [])
    assert connector.job(job)["error_code"] == "machine_revoked"


def test_a_second_connector_with_the_same_key_ends_the_first(connector: Connector, connector_of: Any) -> None:
    import shutil

    copy = connector_of()
    shutil.copy(connector.state / "pairing.json", copy.state)
    copy.machine = connector.machine
    copy.start()

    assert connector.process.wait(60) == 4
    assert "only one may run" in connector.log


def test_neither_prompt_nor_key_nor_word_is_in_any_log(
    connector: Connector, installation: Installation
) -> None:
    token = (connector.state / "pairing.json").read_text().split('"token": "')[1].split('"')[0]
    connector.end_of(connector.delegate("say the-agents-words", "append log the-secret-prompt", "exit 3"))

    for hidden in (token, "the-agents-words", "the-secret-prompt"):
        assert hidden not in connector.log
        for name in installation.parts:
            assert hidden not in installation.log(name)
    assert "delegation_ended" in connector.log


def test_what_is_kept_is_for_nobody_elses_eyes(connector: Connector) -> None:
    for file in connector.state.rglob("*"):
        assert file.stat().st_mode & 0o077 == 0, file
    assert connector.state.stat().st_mode & 0o077 == 0


def test_status_says_how_things_stand_and_unpair_ends_them(connector: Connector) -> None:
    said = connector.call("status").stdout
    assert "running    yes" in said
    assert "agents     echo" in said
    assert "smct_" not in said
    assert connector.call("run").returncode == 5
    assert connector.call("unpair").returncode == 5

    connector.stop()
    assert connector.call("unpair").stdout == "Unpaired.\n"

    assert connector.api("GET", f"machines/{connector.machine['id']}").json()["status"] == "revoked"
    assert connector.call("status").returncode == 2
    assert connector.call("run").returncode == 2


def test_a_folder_that_only_the_computer_can_see_through_is_refused_before_there_is_a_job(
    connector: Connector,
) -> None:
    outside = connector.folder / "outside"
    (outside / "deeper").mkdir(parents=True)
    (connector.root.parent / "root-evil").mkdir()
    (connector.root / "link").symlink_to(outside)
    (connector.root / "loop").symlink_to(connector.root / "loop")
    (connector.root / "file").touch()
    body = {"kind": "delegation", "machine": connector.machine["id"], "agent_id": "echo", "prompt": "say x"}

    for trick in ("link", "link/deeper", "nothing-there", "file", "../root-evil", "loop"):
        answer = connector.api("POST", "jobs", json=body | {"cwd": f"{connector.root}/{trick}"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "cwd_not_allowed"), trick

    assert connector.api("GET", "jobs").json()["results"] == []


def test_a_link_that_stays_inside_is_allowed(connector: Connector) -> None:
    (connector.root / "site").mkdir()
    (connector.root / "link").symlink_to(connector.root / "site")

    done = connector.end_of(connector.delegate("write here.txt x", cwd=f"{connector.root}/link"))

    assert done["status"] == "completed"
    assert (connector.root / "site/here.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("tier", "answers"),
    [
        ("curated", ["edit: yes", "edit: no", "execute: no", "read: yes", "read: no", "fetch: no"]),
        ("shell", ["edit: yes", "edit: no", "execute: yes", "read: yes", "read: no", "fetch: yes"]),
    ],
)
def test_what_an_agent_asks_for_is_answered_by_the_tier(
    connector_of: Any, tier: str, answers: list[str]
) -> None:
    connector = connector_of()
    connector.pair(tier)
    connector.start()
    connector.await_online()
    (connector.root / "in.txt").write_text("inside")
    (connector.folder / "out.txt").write_text("outside")

    done = connector.end_of(
        connector.delegate(
            "ask edit in.txt", "ask edit ../out.txt", "ask execute", "ask read in.txt", "ask read ../out.txt", "ask fetch",
            "write ../out.txt changed", "read ../out.txt", "read in.txt",
        )
    )  # fmt: skip

    for answer in answers:
        assert f"{answer}\n" in done["report"]
    assert "may not write ../out.txt\nmay not read ../out.txt\ninside" in done["report"]
    assert (connector.folder / "out.txt").read_text() == "outside"
    refused = done["delegation"]["on_machine"]["refused_permissions"]
    assert f"refused what the agent asked for {refused} times" in done["report"]


def test_a_computer_that_only_probes_runs_nothing(connector_of: Any) -> None:
    connector = connector_of()
    connector.pair("probe")
    connector.start()
    connector.await_online()
    body = {"kind": "delegation", "machine": connector.machine["id"], "agent_id": "echo", "prompt": "say x"}

    answer = connector.api("POST", "jobs", json=body | {"cwd": str(connector.root)})

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "agent_not_available")
    assert "agent_started" not in connector.log


def test_an_attempt_on_an_issue_pushes_its_branch_with_a_credential_of_its_own(connector: Connector) -> None:
    api = connector.api
    repository = api.insist("POST", "repositories", json={"name": "site"})
    issue = api.insist(
        "POST", f"repositories/{repository['id']}/issues", json={"title": "Mend it", "body": "Please."}
    )
    api.insist(
        "PATCH", f"machines/{connector.machine['id']}", json={"scoped_forge_credentials_enabled": True}
    )
    lines = [
        f"sh git clone -q {repository['clone_url']} copy 2>&1",
        "sh cd copy && git checkout -q -b agent/mend && echo x > f && git add f",
        "sh cd copy && git -c user.name=a -c user.email=a@localhost commit -q -m mend",
        "sh cd copy && git push -q origin agent/mend && git config -l && git remote -v && env | grep -c PASSWORD",
    ]

    attempt = api.insist(
        "POST", "assignments",
        json={
            "repository": repository["id"], "issue_number": str(issue["number"]), "machine": connector.machine["id"],
            "agent_id": "echo", "cwd": str(connector.root), "branch": "agent/mend", "prompt": "\n".join(lines),
        },
    )  # fmt: skip
    eventually(lambda: api.insist("GET", f"assignments/{attempt['id']}")["is_terminal"])

    ended = api.insist("GET", f"assignments/{attempt['id']}")
    [push] = api.insist("GET", f"repositories/{repository['id']}/pushes")["results"]
    job = api.insist("GET", "jobs?kind=delegation")["results"][0]
    assert (ended["state"], job["status"]) == ("completed", "completed"), job["report"]
    assert "agent/mend" in str(push)
    assert "oa_assignment_" not in job["report"]
    assert list((connector.state / "credentials").iterdir()) == []


def test_several_run_side_by_side(connector: Connector) -> None:
    jobs = [connector.delegate("wait go", f"append log-{n} {n}") for n in range(5)]
    (connector.root / "go").touch()

    assert {connector.end_of(job)["status"] for job in jobs} == {"completed"}
    assert sorted((connector.root / f"log-{n}").read_text() for n in range(5)) == [f"{n}\n" for n in range(5)]


def test_a_probe_finds_what_was_installed_since(connector: Connector) -> None:
    machine = connector.api.insist("POST", f"machines/{connector.machine['id']}/probe")

    assert [agent["id"] for agent in machine["agents"]] == ["echo"]
