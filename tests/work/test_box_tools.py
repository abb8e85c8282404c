"""The tools by which a job uses boxes, with commands that are really executed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accounts.models import User
from base import pump
from boxes.models import Box
from boxes.provisioning import ProvisioningDriver
from conversations.services import ensure_conversation
from runs.driver import RunDriver
from runs.models import Run
from tests.fakes.provider import FakeProvider
from tests.waiting import eventually
from tests.work.conftest import in_thread
from tests.work.scripted import ScriptedModel, calls_of, outputs_of, said
from work.model_client import CallWritten, ModelRequest, Text
from work.models import Job, JobBox
from work.services import cancel_job, create_job, get_job, list_job_steps
from work.tasks import recover
from work.tools import REGISTRY
from work.worker import drive

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def driven(provider: FakeProvider) -> Iterator[FakeProvider]:
    """The provider, and a worker that drives boxes and runs beside the job."""
    provider.execute_commands()
    done = threading.Event()

    def work() -> None:
        drivers = [ProvisioningDriver(), RunDriver()]
        while not done.wait(0.05):
            pump.run_once(drivers)

    worker = threading.Thread(target=in_thread(work))
    worker.start()
    yield provider
    done.set()
    worker.join(60)


@pytest.fixture
def start(owner: User) -> Callable[..., Job]:
    """`start(keep_boxes=True)` is a queued job of the owner's."""

    def make(**keywords: Any) -> Job:
        conversation = ensure_conversation(owner)
        return create_job(
            conversation_id=conversation.pk,
            owner_visitor_id=conversation.visitor_id,
            goal="use a box",
            **keywords,
        )

    return make


class Caller(ScriptedModel):
    """Calls these tools in turn; arguments may be made from the results so far. Then it reports."""

    def __init__(self, *calls: tuple[str, Any]) -> None:
        super().__init__(self._next)
        self.calls = calls

    def _next(self, request: ModelRequest) -> list[Any]:
        done = len(calls_of(request))
        if done == len(self.calls):
            return said(Text("Done."))
        name, arguments = self.calls[done]
        made = arguments(self.results(request)) if callable(arguments) else arguments
        return said(CallWritten(f"call-{done}", name, json.dumps(made)))

    def results(self, request: ModelRequest | None = None) -> list[Any]:
        return [json.loads(output) for output in outputs_of(request or self.requests[-1])]


NEW = ("box_new", {"label": "workshop"})


def run(command: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("box_run", {"box": "workshop", "command": command, **more})


def test_a_job_works_in_a_box_of_its_own_and_leaves_none(
    driven: FakeProvider, start: Callable[..., Job]
) -> None:
    model = Caller(NEW, run("echo one; echo two >&2; exit 3"))
    job = drive(start().pk, client=model, registry=REGISTRY)

    made, ran = model.results()
    assert (made["box"], made["state"]) == ("workshop", "ready")
    assert (ran["state"], ran["exit_status"], ran["output"]) == ("failed", 3, "one\ntwo\n")
    assert [step.status for step in list_job_steps(job)] == ["succeeded", "succeeded"]
    assert list_job_steps(job)[1].target_receipt_refs == [f"run:{Run.objects.get().pk}"]
    box = Box.objects.get()
    assert box.stop_requested_at is not None
    assert JobBox.objects.get().box_id == box.pk
    assert Run.objects.get().requesting_principal == {"type": "job", "id": str(job.pk)}


def test_a_box_that_is_to_be_kept_is_kept(driven: FakeProvider, start: Callable[..., Job]) -> None:
    drive(start(keep_boxes=True).pk, client=Caller(NEW), registry=REGISTRY)
    recover()
    assert Box.objects.get().stop_requested_at is None


def test_a_command_that_takes_longer_goes_on_and_is_asked_for(
    driven: FakeProvider, start: Callable[..., Job]
) -> None:
    model = Caller(
        NEW,
        run("echo first; while [ ! -e go ]; do sleep 0.05; done; echo last", wait_seconds=0),
        ("box_output", lambda results: {"run": results[1]["run"], "wait_seconds": 0}),
        ("box_stop", {"box": "workshop"}),
        ("box_output", lambda results: {"run": results[1]["run"], "wait_seconds": 60}),
    )
    drive(start().pk, client=model, registry=REGISTRY)
    _, started, _, stopped, ended = model.results()
    assert "box_output" in started["note"]
    assert started["exit_status"] is None
    assert stopped["box"] == "workshop"
    assert ended["state"] not in ("admitted", "dispatched", "running")


def test_output_is_bounded_and_without_secrets(driven: FakeProvider, start: Callable[..., Job]) -> None:
    secret = "ghp_" + "a1B2" * 9
    model = Caller(NEW, run(f"seq 20000; echo token {secret}"))
    job = drive(start().pk, client=model, registry=REGISTRY)
    ran = model.results()[1]
    assert len(ran["output"].encode()) <= 12_000
    assert ran["beginning_is_missing"] is True
    assert secret not in json.dumps(list_job_steps(job)[1].result)
    assert "token [REDACTED]" in ran["output"]


def test_the_quotas_of_the_api_hold_for_jobs(
    driven: FakeProvider, start: Callable[..., Job], box_api: Any
) -> None:
    box_api(default_maximum_active_boxes=1)
    model = Caller(NEW, ("box_new", {"label": "second"}), run("true"))
    job = drive(start().pk, client=model, registry=REGISTRY)
    assert model.results()[1]["error"]["code"] == "box_quota_reached"
    assert [step.status for step in list_job_steps(job)] == ["succeeded", "failed", "succeeded"]


def test_what_is_not_there_is_said(driven: FakeProvider, start: Callable[..., Job], stranger: User) -> None:
    theirs = ensure_conversation(stranger)
    Box.objects.create(
        conversation=theirs, box_id="bx-theirs", label="theirs", state="ready", setup_status="done"
    )
    model = Caller(
        ("box_run", {"box": "theirs", "command": "true"}),
        ("box_stop", {"box": "bx-theirs"}),
        ("box_output", {"run": "8e4e4ef8-0f3e-4a2b-9b9c-0d7f0b3d3c11"}),
        ("box_output", {"run": "x"}),
    )
    drive(start().pk, client=model, registry=REGISTRY)
    codes = [result["error"]["code"] for result in model.results()]
    assert codes == ["box_not_found", "box_not_owned", "box_run_not_found", "invalid_tool_arguments"]


def test_a_call_that_is_carried_out_again_finds_what_it_made(
    driven: FakeProvider, start: Callable[..., Job]
) -> None:
    from work.deep_work.calling import invocation
    from work.deep_work.stop import Stop
    from work.deep_work.views import StepView
    from work.services import claim_for_run
    from work.states import StepStatus

    job = claim_for_run(start().pk)
    step = StepView("id", "call-7", "box_new", "{}", StepStatus.RUNNING, exact="{}")
    call = invocation(job, None, step, {}, Stop())
    first, again = (REGISTRY["box_new"].execute(call) for _ in range(2))
    assert first.value["id"] == again.value["id"]
    assert Box.objects.count() == JobBox.objects.count() == 1


def test_a_cancelled_job_ends_what_it_started(driven: FakeProvider, start: Callable[..., Job]) -> None:
    job = start()
    model = Caller(NEW, run("sleep 60", wait_seconds=60))
    worker = threading.Thread(target=in_thread(lambda: drive(job.pk, client=model, registry=REGISTRY)))
    worker.start()
    eventually(lambda: Run.objects.filter(state="running").exists())
    cancel_job(job.pk)
    worker.join(60)
    assert get_job(job.pk).status == "cancelled"
    assert Run.objects.get().cancellation_requested_at is not None
    eventually(lambda: Box.objects.get().stopped_at is not None)
    eventually(lambda: Run.objects.get().is_terminal)


def test_a_box_that_came_after_the_end_of_its_job_is_stopped(
    driven: FakeProvider, start: Callable[..., Job]
) -> None:
    from boxes.services import create_box

    job = start()
    cancel_job(job.pk)
    JobBox.objects.create(job=job, create_key="job-late")  # its worker died between this and what follows
    box = create_box(job.conversation_id, create_key="job-late")
    recover()
    eventually(lambda: Box.objects.get(pk=box.pk).stopped_at is not None)
