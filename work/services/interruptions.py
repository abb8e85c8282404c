"""Writing down that a job was interrupted: once for each time somebody held it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from work import incidents
from work.models import Job
from work.states import ACTIVE, IncidentSurface

RESTARTED = "runtime_restarted"


def record(job: Job, generation: int) -> bool:
    """Record that whoever held the job by `generation` is gone. Returns False if that was recorded before."""
    with transaction.atomic():
        unrecorded = Q(recovered_generation__isnull=True) | Q(recovered_generation__lt=generation)
        live = Job.objects.filter(unrecorded, pk=job.pk, status__in=[status.value for status in ACTIVE])
        if not live.update(recovered_generation=generation):
            return False
        incidents.record(
            surface=IncidentSurface.DELEGATION if job.is_delegation else IncidentSurface.JOB,
            origin="work_recovery",
            code=RESTARTED,
            correlation_ref=job.pk,
            conversation=job.conversation_id,
            owner_visitor=job.owner_visitor_id,
            summary=f"A {job.get_kind_display()} was interrupted by a restart and goes on",
            context={"kind": job.kind, "goal": job.goal, "generation": generation},
        )
    return True
