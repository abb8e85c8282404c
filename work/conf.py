"""Settings of agent jobs, read at call time from `settings.WORK`."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from base.conf import resolve, setting

ECHO = "echo"
"""The built-in model, which repeats what it is told: the whole path runs without a key."""


@dataclass(frozen=True)
class WorkSettings:
    """The `WORK` family. Times as their names say; limits are those of one job."""

    model: str = setting(
        ECHO,
        "WORK_MODEL",
        "The model that does deep work. echo is built in, needs no key and repeats what it is told.",
    )
    model_api_key: str = setting(
        "", "WORK_MODEL_API_KEY", "Key of the model's API. A server of one's own may want none.", secret=True
    )
    model_base_url: str = setting(
        "",
        "WORK_MODEL_BASE_URL",
        "Base URL of an API that speaks OpenAI's Responses protocol. Empty: OpenAI's own.",
        address=True,
    )
    model_prices: tuple[str, ...] = setting(
        (),
        "WORK_MODEL_PRICES",
        "Comma-separated MODEL=INPUT:CACHED:OUTPUT, US dollars for a million tokens. Needed for cost budgets.",
    )
    model_connect_timeout_ms: int = setting(
        10_000, "WORK_MODEL_CONNECT_TIMEOUT_MS", "Time to reach the model's API.", minimum=100
    )
    model_silence_timeout_ms: int = setting(
        120_000,
        "WORK_MODEL_SILENCE_TIMEOUT_MS",
        "Longest time without a word within one answer.",
        minimum=100,
    )
    job_concurrency: int = setting(
        32, "WORK_JOB_CONCURRENCY", "Deep-work jobs that one worker drives at once.", minimum=1, maximum=512
    )
    wall_clock_ms: int = setting(
        600_000, "WORK_WALL_CLOCK_MS", "A deep-work job's time from its first start.", minimum=1
    )
    maximum_tool_calls: int = setting(
        32, "WORK_MAXIMUM_TOOL_CALLS", "Tool calls of one job.", minimum=0, maximum=60
    )
    maximum_continuations: int = setting(
        32, "WORK_MAXIMUM_CONTINUATIONS", "Answers of the model after its first.", minimum=0, maximum=60
    )
    tool_result_bytes: int = setting(
        16_384,
        "WORK_TOOL_RESULT_BYTES",
        "What is kept of one tool call's result, and shown to the model.",
        minimum=256,
        maximum=100_000,
    )
    dialogue_bytes: int = setting(
        400_000,
        "WORK_DIALOGUE_BYTES",
        "Results that the model is shown at once; beyond that the oldest are shortened.",
        minimum=1024,
    )


def work_settings() -> WorkSettings:
    """The settings in force now. Raises ImproperlyConfigured for an unknown name or a value out of bounds."""
    return resolve(WorkSettings, settings.WORK)
