"""The ledger of jobs and their steps, of paired machines and what goes to and fro with them, and of incidents."""

from work.models.channel import MachineChannel, MachineFrame, MachineRequest
from work.models.delegation import Delegation
from work.models.incident import Incident
from work.models.job import Job
from work.models.job_box import JobBox
from work.models.machine import Machine, MachinePairing
from work.models.step import JobStep

__all__ = [
    "Delegation",
    "Incident",
    "Job",
    "JobBox",
    "JobStep",
    "Machine",
    "MachineChannel",
    "MachineFrame",
    "MachinePairing",
    "MachineRequest",
]
