"""Following a job without polling, and without a database connection while waiting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from base import connections, wakeups
from work.models import Job, JobStep
from work.services import get_job, list_job_steps
from work.watching import key_of

LONGEST_NAP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Wrote:
    """Text that was not told before. `anew`: it replaces all that was told since the last step."""

    text: str
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Stepped:
    """A call was asked for, or has ended."""

    step: JobStep


@dataclass(frozen=True, slots=True)
class Stands:
    """The job's status is another than before; the last event is that of its end."""

    job: Job


News = Wrote | Stepped | Stands


def follow(job_id: UUID) -> Iterator[News]:
    """What happens to a job from its beginning until it has ended. The report is not told: the last `Stands` has it.

    Ends before that in a process that is asked to end.

    Raises JobNotFound.
    """
    text, steps, status = "", dict[UUID, str](), ""
    with wakeups.of_this_process.waiting_for(key_of(job_id)) as woken:
        while True:
            job = get_job(job_id)
            found = list_job_steps(job)
            connections.release()
            if not job.is_terminal:
                yield from _text_news(text, job.report or "", found[-1].report_offset if found else 0)
                text = job.report or ""
            for step in found:
                if steps.get(step.pk) != step.status:
                    steps[step.pk] = step.status
                    yield Stepped(step)
            if job.status != status:
                status = job.status
                yield Stands(job)
            if job.is_terminal or wakeups.of_this_process.is_over:
                return
            woken.wait(LONGEST_NAP_SECONDS)
            woken.clear()


def _text_news(before: str, after: str, offset: int) -> Iterator[Wrote]:
    if after == before:
        return
    if after.startswith(before):
        yield Wrote(after[len(before) :])
    else:
        yield Wrote(after.encode()[offset:].decode("utf-8", "ignore"), anew=True)
