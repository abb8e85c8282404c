"""A deep-work job whose model does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.models import Message
from tests.work.conftest import JobOf
from tests.work.driven import done
from tests.work.scripted import asks, said
from work.model_client import Done, ModelError, Started, Text, Trouble, Unsupported
from work.models import Incident

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (said(asks("x", "1"), asks("y", "2")), "parallel_tool_calls_not_supported"),
        ([asks("x", "1"), Done("r")], "tool_call_before_response_start"),
        (said(Unsupported("computer_call")), "unsupported_tool_call"),
        ([ModelError(Trouble.REFUSED, "invalid_provider_event")], "invalid_provider_event"),
        ([ModelError(Trouble.REFUSED, "provider_unauthorized")], "provider_unauthorized"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_will_not_get_better_fails_the_job_at_once(
    make_job: JobOf, answer: list[Any], code: str
) -> None:
    job, model = done(make_job(), answer)
    assert (job.status, job.error_code, len(model.requests)) == ("failed", code, 1)
    assert job.report.startswith(f"Deep work job failed ({code}).")
    incident = Incident.objects.get(code=code)
    assert (incident.surface, incident.origin, incident.correlation_ref) == ("job", "job_server", str(job.pk))
    assert Message.objects.get(work_job_id=job.pk).content == job.report


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ([ModelError(Trouble.RETRY_LATER, "rate_limited", retry_after_seconds=0.0)], "rate_limited"),
        ([Started("r"), Text("Half"), ModelError(Trouble.UNKNOWN, "transport")], "transport"),
        ([Started("r"), Text("Half")], "missing_terminal_event"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_may_get_better_is_tried_five_times(make_job: JobOf, answer: list[Any], code: str) -> None:
    job, model = done(make_job(), answer)
    assert (job.status, job.error_code, len(model.requests)) == ("failed", code, 5)
    assert job.report.count("Half") == ("Half" in repr(answer))
    assert Incident.objects.filter(code=code).count() == 1


@pytest.mark.usefixtures("at_once")
def test_a_job_goes_on_after_a_while_and_no_text_is_doubled(make_job: JobOf) -> None:
    broken = [Started("r"), Text("The answ"), ModelError(Trouble.UNKNOWN, "transport")]
    whole = said(Text("The answer."), asks("x", "call-1"))
    job, model = done(make_job(), broken, whole, broken, said())
    assert (job.status, job.failures, len(model.requests)) == ("completed", 0, 4)
    assert job.report.endswith("last answer was empty.\n\nThe answer.")
