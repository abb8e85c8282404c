"""What an answer that is no success means: which code it gets, and whether what was asked for may have happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from boxes.client.dialect import canonical_code
from boxes.errors import ProviderCode, ProviderError, Refused, RetryLater, Unknown

REPEATED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which a GET is sent again, unless the answer asks for a pause."""

CREATE_REFUSED_STATUSES = frozenset({400, 401, 402, 403, 404, 422, 429})
CREATE_REFUSED_UNAVAILABLE = frozenset({"no_ready_machine", "out_of_capacity"})

NOT_RUN_YET = frozenset({"box_starting", "box_restoring", "box_securing"})
"""Codes of a 409 that say: the command never ran, ask again shortly."""

ASK_AGAIN_SHORTLY = NOT_RUN_YET | {"idempotency_in_progress", "box_recent_snapshot_required"}

NO_CODE = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the HTTP status, the JSON object if it was one, and the pause that was asked for in seconds."""

    status: int
    document: Mapping[str, Any] | None
    retry_after_seconds: float | None = None

    @property
    def is_success(self) -> bool:
        """A 2xx with a JSON object that does not itself say that it failed."""
        return 200 <= self.status < 300 and self.document is not None and self.document.get("ok") is not False

    @property
    def code(self) -> str:
        """The provider's error code in the words of the `box` dialect, wherever it stands in the body."""
        return _code(self.document or {})


def success(answer: Answer, error: Callable[[Answer], ProviderError]) -> Mapping[str, Any]:
    """The object of a successful answer; raises what `error` makes of any other."""
    if answer.document is None or not answer.is_success:
        raise error(answer)
    return answer.document


def invalid(answer: Answer, reason: str) -> Unknown:
    """The error for an answer that says success and does not hold what it should."""
    return Unknown(ProviderCode.RESPONSE_INVALID, provider_status=answer.status, log_detail=reason)


def general_error(answer: Answer) -> ProviderError:
    """For reads, and for calls that may be repeated without harm: stop, update, delete."""
    if answer.status == 429 or (
        answer.retry_after_seconds is not None and answer.status in REPEATED_STATUSES
    ):
        return _error(RetryLater, answer)
    if answer.status == 409 and answer.code in ASK_AGAIN_SHORTLY:
        return _error(RetryLater, answer)
    return _error(Refused if _is_no(answer) else Unknown, answer)


def create_error(answer: Answer) -> ProviderError:
    """For a create: Refused only where it is certain that no box was made, otherwise Unknown."""
    refused = (
        answer.status in CREATE_REFUSED_STATUSES
        or (answer.status == 503 and answer.code in CREATE_REFUSED_UNAVAILABLE)
        or (answer.status == 409 and not answer.code.startswith("idempotency_"))
    )
    return _error(Refused if refused else Unknown, answer)


def command_error(answer: Answer) -> ProviderError:
    """For a command: RetryLater only where it is certain that it did not run; it is never repeated by itself."""
    if answer.status == 429 or (answer.status == 409 and answer.code in NOT_RUN_YET):
        return _error(RetryLater, answer)
    certain = 400 <= answer.status < 500 and answer.status != 408 and answer.code != "box_direct_failed"
    return _error(Refused if certain else Unknown, answer)


def no_result_error(answer: Answer) -> Unknown:
    """For a 2xx to a command that holds no result. Whatever else it says, the command may have run."""
    code = ProviderCode.REFUSED if answer.code != NO_CODE else ProviderCode.RESPONSE_INVALID
    return Unknown(code, provider_status=answer.status, provider_code=answer.code)


def _is_no(answer: Answer) -> bool:
    """Whether the provider understood and refused: a 4xx, or a 2xx whose body says that it failed."""
    if 200 <= answer.status < 300:
        return answer.document is not None
    return 400 <= answer.status < 500 and answer.status != 408


def _error(kind: type[ProviderError], answer: Answer) -> ProviderError:
    return kind(
        _classified(answer),
        provider_status=answer.status,
        provider_code=answer.code,
        retry_after_seconds=answer.retry_after_seconds,
    )


def _classified(answer: Answer) -> ProviderCode:
    if 200 <= answer.status < 300 and not (answer.document and answer.document.get("ok") is False):
        return ProviderCode.RESPONSE_INVALID
    if answer.status == 404 and answer.code == "not_supported":
        return ProviderCode.REFUSED  # the route is missing, which says nothing of the box
    return {
        401: ProviderCode.UNAUTHORIZED,
        402: ProviderCode.BILLING_REQUIRED,
        403: ProviderCode.BILLING_REQUIRED,
        404: ProviderCode.NOT_FOUND,
        429: ProviderCode.RATE_LIMITED,
    }.get(answer.status, ProviderCode.REFUSED)


def _code(document: Mapping[str, Any]) -> str:
    error = document.get("error")
    nested = error.get("code") if isinstance(error, dict) else error
    return canonical_code(document.get("code")) or canonical_code(nested) or NO_CODE
