"""What each process counts for `/metrics`. The ledger itself is not counted here: it is asked when metrics are read.

Labels are of few values that are known beforehand, never an id or a text from outside.
"""

from __future__ import annotations

from prometheus_client import Counter, Histogram

PROVIDER_CALLS = Counter(
    "openagents_provider_calls", "Calls to the provider of boxes, by what came of them.", ["call", "outcome"]
)
PROVIDER_SECONDS = Histogram(
    "openagents_provider_call_seconds",
    "Time of a call to the provider, those without an answer too.",
    ["call"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0),
)
TASKS = Counter(
    "openagents_tasks", "Due rows that a worker claimed, settled or could not settle.", ["driver", "outcome"]
)
PASSES = Counter("openagents_passes", "Periodic passes, by how they ended.", ["name", "outcome"])
RUNS_ENDED = Counter("openagents_runs_ended", "Runs that ended, by state.", ["state"])
JOBS_ENDED = Counter("openagents_jobs_ended", "Jobs that ended, by status.", ["status"])
WEBHOOK_ATTEMPTS = Counter(
    "openagents_webhook_attempts", "Tries of webhook deliveries, by what follows.", ["verdict"]
)
BOXES_STOPPED = Counter("openagents_boxes_stopped", "Boxes that stopped.")


def provider_call(call: str, outcome: str, seconds: float) -> None:
    """Count one call that was sent. `outcome` is `ok`, `http_<status>` or what kept the answer away."""
    PROVIDER_CALLS.labels(call, outcome).inc()
    PROVIDER_SECONDS.labels(call).observe(seconds)


def status_outcome(status: int) -> str:
    """The outcome of an answer with this HTTP status; of the rare ones only the class is told."""
    if 200 <= status < 300:
        return "ok"
    told = {400, 401, 402, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504}
    return f"http_{status}" if status in told else f"http_{status // 100}xx"
