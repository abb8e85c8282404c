"""The states of jobs and their steps, of machines, pairings and incidents, and the moves between them, as data."""

from __future__ import annotations

from django.db import models


class JobKind(models.TextChoices):
    DEEP_WORK = "deep_work", "work with tools on the server"
    DELEGATION = "delegation", "work of an agent on a paired machine"


class Surface(models.TextChoices):
    TEXT = "text", "written"
    VOICE = "voice", "spoken"


class JobStatus(models.TextChoices):
    QUEUED = "queued", "waiting for a worker"
    RUNNING = "running", "at work"
    COMPLETED = "completed", "done"
    FAILED = "failed", "failed"
    INTERRUPTED = "interrupted", "interrupted"
    BUDGET_EXHAUSTED = "budget_exhausted", "stopped at a limit"
    CANCELLED = "cancelled", "cancelled"


ACTIVE = (JobStatus.QUEUED, JobStatus.RUNNING)
TERMINAL = (
    JobStatus.COMPLETED,
    JobStatus.FAILED,
    JobStatus.INTERRUPTED,
    JobStatus.BUDGET_EXHAUSTED,
    JobStatus.CANCELLED,
)
MOVES: dict[JobStatus, tuple[JobStatus, ...]] = {
    JobStatus.QUEUED: (
        JobStatus.QUEUED,
        JobStatus.RUNNING,
        JobStatus.FAILED,
        JobStatus.INTERRUPTED,
        JobStatus.CANCELLED,
    ),
    JobStatus.RUNNING: (JobStatus.RUNNING, *TERMINAL),
}


class StepStatus(models.TextChoices):
    REQUESTED = "requested", "asked for by the model"
    RUNNING = "running", "at work"
    SUCCEEDED = "succeeded", "done"
    FAILED = "failed", "failed"
    REFUSED = "refused", "refused"
    CANCELLED = "cancelled", "cancelled"
    UNAVAILABLE = "unavailable", "its tool was not there"
    INTERRUPTED = "interrupted", "interrupted; whether it took effect is not known"


ACTIVE_STEPS = (StepStatus.REQUESTED, StepStatus.RUNNING)
TERMINAL_STEPS = (
    StepStatus.SUCCEEDED,
    StepStatus.FAILED,
    StepStatus.REFUSED,
    StepStatus.CANCELLED,
    StepStatus.UNAVAILABLE,
    StepStatus.INTERRUPTED,
)
STEP_MOVES: dict[StepStatus, tuple[StepStatus, ...]] = {
    StepStatus.REQUESTED: (StepStatus.REQUESTED, StepStatus.RUNNING, *TERMINAL_STEPS),
    StepStatus.RUNNING: (StepStatus.RUNNING, *TERMINAL_STEPS),
}


class MachineTier(models.TextChoices):
    PROBE = "probe", "may only say what is there"
    CURATED = "curated", "may run listed agents"
    SHELL = "shell", "may run any command"


class MachineStatus(models.TextChoices):
    ACTIVE = "active", "paired"
    REVOKED = "revoked", "revoked"


class PairingStatus(models.TextChoices):
    PENDING = "pending", "waits for its owner"
    APPROVED = "approved", "approved, its token not yet fetched"
    CLAIMED = "claimed", "its token was fetched"
    EXPIRED = "expired", "expired"


OPEN_PAIRINGS = (PairingStatus.PENDING, PairingStatus.APPROVED)


class IncidentSurface(models.TextChoices):
    TEXT = "text", "a written conversation"
    VOICE = "voice", "a spoken conversation"
    JOB = "job", "a job"
    DELEGATION = "delegation", "a delegation"
    CONTROLLER = "controller", "the control plane itself"


class Severity(models.TextChoices):
    EXPECTED = "expected", "happens; nothing to mend"
    DEGRADED = "degraded", "something outside was not well"
    ANOMALOUS = "anomalous", "should not happen"


class IncidentStatus(models.TextChoices):
    OPEN = "open", "new"
    TRIAGED = "triaged", "looked at"
    FIXING = "fixing", "being mended"
    RESOLVED = "resolved", "mended"
    WONT_FIX = "wont_fix", "stays as it is"
