"""What the processes' signs of life say: pure, from the figures alone, so that looking never asks the provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from base.amounts import duration
from openagents_site.dashboard.figures import Now, Pass
from openagents_site.doctor import Finding as Judged
from openagents_site.doctor import Level, processes
from openagents_site.periodic import RECONCILE
from openagents_site.tasks import SCHEDULER
from openagents_site.worker import LATE_INTERVALS

NOT_KNOWN = "not known"
ASK_AGAIN = "see the web process's log, and load the page again"


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the installation: well or not, in words; `remedy` is what to do where it is not."""

    name: str
    is_good: bool
    said: str
    remedy: str = ""
    is_starting: bool = False
    """Not well yet, and given its time."""


def findings(now: Now, *, has_key: bool) -> list[Finding]:
    """Worker, scheduler, each pass, and the provider as the last pass met it. `has_key`: whether one is set."""
    found = [_workers(now), _scheduler(now)]
    if now.passes is None:
        return [*found, Finding("Passes and provider", False, NOT_KNOWN, ASK_AGAIN)]
    found += [_pass(each) for each in now.passes]
    last = next((each for each in now.passes if each.name == RECONCILE), None)
    return [*found, _provider(last, has_key)]


def _workers(now: Now) -> Finding:
    if now.workers is None:
        return Finding("Workers", False, NOT_KNOWN, "start manage.py run_worker")
    return _as_judged("Workers", processes.workers(now.workers, now.started))


def _scheduler(now: Now) -> Finding:
    if now.heartbeats is None:
        return Finding("Scheduler", False, NOT_KNOWN, ASK_AGAIN)
    return _as_judged("Scheduler", processes.scheduler(now.heartbeats.get(SCHEDULER), now.started))


def _as_judged(name: str, judged: Judged) -> Finding:
    is_starting = judged.level is Level.WARNING
    return Finding(name, judged.level is Level.GOOD, judged.seen, judged.remedy, is_starting)


def _pass(each: Pass) -> Finding:
    name = f"Pass {each.name}"
    if each.failures:
        times = f"failed {each.failures} time{'' if each.failures == 1 else 's'} in a row"
        return Finding(name, False, f"{times}: {each.error or 'not known why'}", "see the worker's log")
    if each.late_seconds > LATE_INTERVALS * each.interval_seconds:
        return Finding(name, False, f"{duration(each.late_seconds)} late", "start manage.py run_worker")
    return Finding(
        name, True, "in time" if each.age_seconds is None else f"ended {duration(each.age_seconds)} ago"
    )


def _provider(last: Pass | None, has_key: bool) -> Finding:
    if not has_key:
        return Finding("Provider", False, "no key is set: boxes cannot be created", "set BOX_API_KEY")
    if last is None or last.age_seconds is None:
        return Finding("Provider", True, "not asked yet")
    if last.error:
        said = f"did not answer as expected {duration(last.age_seconds)} ago: {last.error}"
        return Finding("Provider", False, said, "run manage.py doctor")
    return Finding("Provider", True, f"answered {duration(last.age_seconds)} ago")


def is_good(found: Sequence[Finding]) -> bool:
    """Whether all is well."""
    return all(finding.is_good for finding in found)
