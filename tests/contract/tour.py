"""A tour of the whole API: every operation once, in the order in which a newcomer would try them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from openagents_site.launcher import program
from tests.contract.exchange import Caller, Exchange
from tests.contract.installation import Running
from tests.contract.machine import Machine
from tests.waiting import eventually

UP = {"ready", "idle", "running"}
ISSUE = "/repositories/{repository_id}/issues/{number}"


def take(server: Running) -> dict[str, Exchange]:
    """Every operation's first exchange. What was made is left as it is, for others to find."""
    ask = Caller(server.url, server.tokens)
    _account(ask)
    conversation = _conversation(ask)
    box = _box(ask)
    _runs(ask, box)
    _forge(ask, server, box)
    _machines(ask, server)
    _jobs(ask)
    _webhooks(ask)
    _overview(ask, box)
    _several_boxes(ask)
    _staff(ask, server, conversation)
    ask("POST", "/boxes/{ref}/stop", ref=box)
    ask("DELETE", "/conversations/{conversation_id}", conversation_id=conversation)
    return ask.exchanges


def _account(ask: Caller) -> None:
    ask("GET", "/me")
    made = ask("POST", "/tokens", {"name": "ci", "scopes": ["read", "box:control"], "expires_in_days": 30})
    ask("GET", "/tokens")
    ask("DELETE", "/tokens/{token_id}", token_id=made["id"])


def _conversation(ask: Caller) -> str:
    made = ask("POST", "/conversations")["id"]
    ask("GET", "/conversations")
    ask("GET", "/conversations/{conversation_id}", conversation_id=made)
    message = {"content": "The login test fails every other time. Find out why."}
    ask("POST", "/conversations/{conversation_id}/messages", message, conversation_id=made)
    ask("GET", "/conversations/{conversation_id}/messages", conversation_id=made)
    return str(made)


def _box(ask: Caller) -> str:
    box = ask("POST", "/boxes", {"label": "builder", "wait": 25})
    if box["state"] not in UP:  # a busy machine takes longer than may be waited for in one call
        eventually(lambda: ask("GET", "/boxes/{ref}", ref="builder")["state"] in UP)
    ask("GET", "/boxes", query="?active=true")
    ask("GET", "/boxes/{ref}", ref="builder")
    ask(
        "POST",
        "/boxes/{ref}/commands",
        {"command": "uname -s; echo ready", "timeout_seconds": 20},
        ref="builder",
    )
    ask("POST", "/boxes/{ref}/extend", {"seconds": 900}, ref="builder")
    return str(box["id"])


def _runs(ask: Caller, box: str) -> None:
    command = 'for n in 1 2 3; do echo "step $n"; done; exit 3'
    key = {"Idempotency-Key": f"tests-of-{secrets.token_hex(4)}"}
    run = ask("POST", "/runs", {"box": "builder", "command": command}, headers=key)["id"]
    ask("GET", "/runs/{run_id}/output", query="?offset=0&wait=25", run_id=run)
    _ended(ask, run)
    for way in ("log", "log/download", "stream"):
        ask("GET", f"/runs/{{run_id}}/{way}", run_id=run)
    ask.exchanges["GET /api/v1/runs/{run_id}"] = _last(ask, "GET", "/runs/{run_id}", run_id=run)
    ask("GET", "/runs", query=f"?box={box}&state=failed")
    ask("GET", "/history", query=f"?object=run:{run}")
    longer = ask(
        "POST", "/runs", {"box": "builder", "command": "sleep 600", "idempotency_key": secrets.token_hex(8)}
    )
    ask("POST", "/runs/{run_id}/cancel", run_id=longer["id"])
    _ended(ask, longer["id"])


def _ended(ask: Caller, run: str) -> None:
    ask.until("is_terminal", "GET", "/runs/{run_id}", query="?wait=5", run_id=run)


def _last(ask: Caller, method: str, template: str, **options: Any) -> Exchange:
    """This exchange anew, in the place of the first."""
    ask.exchanges.pop(f"{method} /api/v1{template}", None)
    ask(method, template, **options)
    return ask.exchanges[f"{method} /api/v1{template}"]


def _forge(ask: Caller, server: Running, box: str) -> None:
    wanted = {"name": "shop", "description": "The web shop", "visibility": "private"}
    repository = ask("POST", "/repositories", wanted)
    here = {"repository_id": repository["id"]}
    ask("GET", "/repositories", query="?name=shop")
    ask("GET", "/repositories/{repository_id}", **here)
    ask("PATCH", "/repositories/{repository_id}", {"protected_branches": ["release"]}, **here)
    program.push(repository["clone_url"], server.tokens["owner"])
    _members(ask, here)
    _issue(ask, here)
    _attempts(ask, here, box)
    ask("GET", "/repositories/{repository_id}/pushes", **here)


def _members(ask: Caller, here: Mapping[str, str]) -> None:
    ask("POST", "/repositories/{repository_id}/members", {"user": "stranger", "role": "viewer"}, **here)
    ask("GET", "/repositories/{repository_id}/members", **here)
    ask("DELETE", "/repositories/{repository_id}/members/{user}", user="stranger", **here)


def _issue(ask: Caller, here: Mapping[str, str]) -> None:
    wanted = {
        "title": "The login test is flaky",
        "body": "It fails about every other time.",
        "labels": ["bug"],
    }
    number = ask("POST", "/repositories/{repository_id}/issues", wanted, **here)["number"]
    ask("GET", "/repositories/{repository_id}/issues", query="?state=open&label=bug", **here)
    ask("POST", f"{ISSUE}/comments", {"body": "Seen again today."}, number=number, **here)
    ask("GET", f"{ISSUE}/comments", number=number, **here)
    ask("PATCH", ISSUE, {"labels": ["bug", "tests"]}, number=number, **here)


def _attempts(ask: Caller, here: Mapping[str, str], box: str) -> None:
    wanted = {"repository": here["repository_id"], "issue_number": 1, "box": box}
    pushing = (
        'echo "wait for the server" > login.txt && git add . && git commit --quiet -m "Fixes #1" && git push'
    )
    attempt = ask("POST", "/assignments", wanted | {"command": pushing})["id"]
    ask.until("is_terminal", "GET", "/assignments/{assignment_id}", query="?wait=10", assignment_id=attempt)
    ended = _last(ask, "GET", "/assignments/{assignment_id}", assignment_id=attempt)
    assert ended.answer["state"] == "completed", ended.answer
    ask("GET", "/assignments", query="?state=completed")
    _last(ask, "GET", ISSUE, number=1, **here)
    second = ask("POST", "/assignments", wanted | {"command": "sleep 600"})["id"]
    ask("POST", "/assignments/{assignment_id}/cancel", assignment_id=second)
    _free(ask, box)
    third = ask("POST", "/assignments", wanted | {"command": "sleep 600"})["id"]
    ask("POST", f"{ISSUE}/attempts/{{attempt_id}}/cancel", number=1, attempt_id=third, **here)
    _free(ask, box)


def _free(ask: Caller, box: str) -> None:
    """Once no run is at work on the box."""
    for run in ask("GET", "/runs", query=f"?box={box}")["results"]:
        if not run["is_terminal"]:
            _ended(ask, run["id"])


def _machines(ask: Caller, server: Running) -> None:
    about = {
        "name": "laptop",
        "tier": "shell",
        "platform": "linux-x64",
        "agent_version": "1.0.0",
        "roots": ["/srv/code"],
    }
    started = ask("POST", "/pairings", about, by=None)
    ask("POST", "/pairings/approve", {"code": started["code"]})
    secret = {"X-Pairing-Secret": started["poll_secret"]}
    claimed = ask("GET", "/pairings/{pairing_id}", by=None, headers=secret, pairing_id=started["id"])
    machine = {"machine_id": claimed["machine"]["id"]}
    with Machine(server.url, claimed["token"]):
        eventually(lambda: ask("GET", "/machines")["results"][0]["online"])
        _last(ask, "GET", "/machines")
        ask("GET", "/machines/{machine_id}", **machine)
        ask("POST", "/machines/{machine_id}/probe", **machine)
        _delegation(ask, machine["machine_id"])
    ask("PATCH", "/machines/{machine_id}", {"name": "workshop", "tier": "curated"}, **machine)
    _grants(ask, machine)
    ask("DELETE", "/machines/{machine_id}", **machine)


def _delegation(ask: Caller, machine: str) -> None:
    wanted = {
        "kind": "delegation", "machine": machine, "agent_id": "claude", "cwd": "/srv/code/shop",
        "prompt": "Find out why the login test is flaky.",
    }  # fmt: skip
    job = ask("POST", "/jobs", wanted)["id"]
    ask.until("is_terminal", "GET", "/jobs/{job_id}", query="?wait=10", job_id=job)
    _last(ask, "GET", "/jobs/{job_id}", job_id=job)
    refused = ask("POST", "/jobs", wanted | {"prompt": "Restart production."})["id"]
    ask.until("is_terminal", "GET", "/jobs/{job_id}", query="?wait=10", job_id=refused)


def _grants(ask: Caller, machine: Mapping[str, str]) -> None:
    repository = {"repository_id": ask("GET", "/repositories")["results"][0]["id"]}
    grant = {"machine": machine["machine_id"], "operations": ["read"]}
    ask("POST", "/repositories/{repository_id}/machines", grant, **repository)
    ask("GET", "/repositories/{repository_id}/machines", **repository)
    ask("DELETE", "/repositories/{repository_id}/machines/{machine_id}", **repository, **machine)


def _jobs(ask: Caller) -> None:
    wanted = {"goal": "Find the commit that made the login test flaky", "context_hint": "It began last week."}
    job = _last(ask, "POST", "/jobs", body=wanted).answer["id"]
    ask.until("is_terminal", "GET", "/jobs/{job_id}", query="?wait=10", job_id=job)
    ask("GET", "/jobs/{job_id}/steps", job_id=job)
    ask("GET", "/jobs", query="?kind=deep_work")
    ask("POST", "/jobs/{job_id}/cancel", job_id=job)


def _webhooks(ask: Caller) -> None:
    wanted = {
        "url": "https://hooks.invalid/boxes",
        "description": "our chat",
        "event_types": ["run.completed", "run.failed", "box.*"],
    }
    hook = {"webhook_id": ask("POST", "/webhooks", wanted)["id"]}
    ask("GET", "/webhooks")
    ask("GET", "/webhooks/{webhook_id}", **hook)
    ask("PATCH", "/webhooks/{webhook_id}", {"event_types": ["run.*"]}, **hook)
    ask("POST", "/webhooks/{webhook_id}/rotate", **hook)
    told = ask("POST", "/webhooks/{webhook_id}/test", **hook)["id"]
    eventually(lambda: ask("GET", "/webhooks/{webhook_id}/deliveries", **hook)["results"][0]["attempts"])
    _last(ask, "GET", "/webhooks/{webhook_id}/deliveries", **hook)
    ask("POST", "/webhooks/{webhook_id}/deliveries/{delivery_id}/replay", delivery_id=told, **hook)
    ask("DELETE", "/webhooks/{webhook_id}", **hook)


def _overview(ask: Caller, box: str) -> None:
    ask("GET", "/fleet")
    ask("GET", "/usage", query="?group=box")
    incident = eventually(lambda: ask("GET", "/incidents")["results"])[0]["id"]
    _last(ask, "GET", "/incidents")
    ask("GET", "/incidents/{incident_id}", incident_id=incident)
    change = {"status": "resolved", "receipt_ref": "commit 4f2a91c"}
    ask("PATCH", "/incidents/{incident_id}", change, incident_id=incident)


def _several_boxes(ask: Caller) -> None:
    plan = ask("POST", "/fanouts", {"count": 5, "labels": [f"worker-{n}" for n in range(1, 6)]})["id"]
    ask("GET", "/fanouts")
    ask("GET", "/fanouts/{plan_id}", plan_id=plan)
    ask("POST", "/fanouts/{plan_id}/cancel", plan_id=plan)


def _staff(ask: Caller, server: Running, conversation: str) -> None:
    mine = ask("POST", "/boxes", {"label": "stuck"}, by="staff")["id"]
    ask("POST", "/boxes/{ref}/forget", by="staff", ref=mine)
    leaked = {server.leak() for _ in range(3)}
    ask("POST", "/reconcile", by="staff")
    found = [
        leak for leak in ask("GET", "/leaks", by="staff")["results"] if leak["provider_box_id"] in leaked
    ]
    stopped, adopted, dismissed = (leak["id"] for leak in found)
    ask("POST", "/leaks/{leak_id}/stop", by="staff", leak_id=stopped)
    adoption = {"conversation": conversation, "label": "found"}
    ask("POST", "/leaks/{leak_id}/adopt", adoption, by="staff", leak_id=adopted)
    ask("POST", "/leaks/{leak_id}/dismiss", by="staff", leak_id=dismissed)
