"""The ledger of jobs and their steps, of paired machines, and of incidents."""

from work.models.incident import Incident
from work.models.job import Job
from work.models.machine import Machine, MachinePairing
from work.models.step import JobStep

__all__ = ["Incident", "Job", "JobStep", "Machine", "MachinePairing"]
