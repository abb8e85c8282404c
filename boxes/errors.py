"""Errors of the boxes app: what is refused, and what became of a call to the provider.

Every error has a stable `code` for programs and a `detail` for people. `STATUS_BY_CODE` says with which HTTP status the
API answers a code, and `PUBLIC_CODE` which code it shows where that differs. A `detail` never holds the provider's text.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from base.errors import CodedError


class BoxError(CodedError):
    """The request about a box could not be done."""

    code = "box_request_failed"

    def __init__(self, code: str | None = None, detail: str | None = None) -> None:
        super().__init__(code, detail or DETAIL_BY_CODE.get(code or type(self).code))


class BoxNotFound(BoxError):
    """There is no such box."""

    code = "box_not_found"


class QuotaReached(BoxError):
    """No more boxes may be active: in this conversation, for this owner, or in the whole installation."""

    code = "box_quota_reached"


class BurnRateReached(BoxError):
    """One more box would pass the ceiling of estimated cost per hour, of the conversation or of the owner."""

    code = "conversation_burn_rate_ceiling"


class BudgetReached(BoxError):
    """The month's budget is spent."""

    code = "owner_budget_reached"


class LifetimeReached(BoxError):
    """The box may not be kept longer than its maximum lifetime."""

    code = "box_lifetime_reached"


class LabelTaken(BoxError):
    """Another active box of this conversation has this label."""

    code = "box_label_taken"


class BoxStopped(BoxError):
    """The box is stopped."""

    code = "box_stopped"


class LeakHandled(BoxError):
    """The leak was handled already."""

    code = "leak_handled"


class LeakBusy(BoxError):
    """A stop of the leaked box is under way; look again in two minutes."""

    code = "leak_busy"


class BoxNotReady(BoxError):
    """The box is not ready yet."""

    code = "box_not_ready"


class InvalidRequest(BoxError):
    """Something in the request is not valid."""

    code = "invalid_request"


class RateLimited(BoxError):
    """Too many requests of this kind in one minute; `Retry-After` says when to come again.

    `retry_after_seconds` is what that header says.
    """

    code = "box_api_rate_limited"

    def __init__(
        self, retry_after_seconds: float, code: str | None = None, detail: str | None = None
    ) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(code, detail)


class ProviderCode(StrEnum):
    """What kind of trouble a call to the provider had."""

    NOT_CONFIGURED = "box_not_configured"
    MALFORMED_ID = "box_malformed_id"
    UNAUTHORIZED = "box_unauthorized"
    BILLING_REQUIRED = "box_billing_required"
    NOT_FOUND = "box_not_found"
    RATE_LIMITED = "box_rate_limited"
    UNREACHABLE = "box_unreachable"
    RESPONSE_INVALID = "box_response_invalid"
    REFUSED = "box_provider_refused"


GONE_CODES = frozenset({"box_stopped", "box_not_found", "box_gone", "machine_not_running"})
"""What the provider says, with a status of 400 to 499, of a box that takes no commands any more."""


class ProviderError(BoxError):
    """A call to the provider did not succeed. Its class says whether what was asked for may have happened.

    `provider_status` and `provider_code` are what the provider said, None where it said nothing; the code is in the
    words of the `box` dialect. `retry_after_seconds` is what its Retry-After header asked for. `log_detail` is short and
    holds neither a secret nor text of the provider.
    """

    def __init__(
        self,
        code: str,
        *,
        provider_status: int | None = None,
        provider_code: str | None = None,
        retry_after_seconds: float | None = None,
        log_detail: str = "",
    ) -> None:
        self.provider_status = provider_status
        self.provider_code = provider_code
        self.retry_after_seconds = retry_after_seconds
        self.log_detail = log_detail or " ".join(
            str(part) for part in (provider_status, provider_code) if part
        )
        super().__init__(str(code))

    @property
    def gone_code(self) -> str | None:
        """Why the box takes no commands any more (one of GONE_CODES); None if the error does not say that."""
        if self.code == ProviderCode.NOT_FOUND:
            return ProviderCode.NOT_FOUND.value
        said_so = self.provider_code in GONE_CODES and 400 <= (self.provider_status or 0) < 500
        return self.provider_code if said_so else None


class Refused(ProviderError):
    """It did not happen, and asking again in the same way will not help."""


class RetryLater(ProviderError):
    """It did not happen; the same request may succeed after `retry_after_seconds`, or after a while if that is None."""


class Unknown(ProviderError):
    """It may have happened. Look again before calling it failed, and repeat only what is safe to repeat."""


DETAIL_BY_CODE: Mapping[str, str] = {
    "box_quota_reached": "This conversation has as many active boxes as it may have.",
    "box_owner_quota_reached": "You have as many active boxes as you may have.",
    "box_global_quota_reached": "The installation has as many active boxes as it may have.",
    "conversation_burn_rate_ceiling": "One more box would pass this conversation's ceiling of cost per hour.",
    "owner_burn_rate_ceiling": "One more box would pass your ceiling of cost per hour.",
    "owner_budget_reached": "Your budget for this month is spent.",
    "budget_reached": "The installation's budget for this month is spent.",
    "invalid_command": "A command is 1 to 4,000 bytes of valid UTF-8 text, not blank, without NUL.",
    "invalid_command_timeout": "A command's timeout is 1 to 570 seconds.",
    "invalid_box_count": "The number of boxes is 1 to 100.",
    "invalid_box_labels": "Give exactly as many labels as boxes, each 1 to 128 bytes and not blank.",
    "invalid_box_label": "A label is 1 to 128 bytes and not blank.",
    "fanout_not_found": "There is no such request for several boxes.",
    "leak_not_found": "There is no such leak.",
    ProviderCode.NOT_CONFIGURED: "No provider of boxes is configured.",
    ProviderCode.MALFORMED_ID: "The provider's id of this box cannot be asked about.",
    ProviderCode.UNAUTHORIZED: "The provider does not accept our key.",
    ProviderCode.BILLING_REQUIRED: "The provider wants its account to be settled first.",
    ProviderCode.NOT_FOUND: "There is no such box.",
    ProviderCode.RATE_LIMITED: "The provider takes no more requests for now.",
    ProviderCode.UNREACHABLE: "The provider could not be reached.",
    ProviderCode.RESPONSE_INVALID: "The provider's answer could not be understood.",
    ProviderCode.REFUSED: "The provider refused the request.",
}

ADMISSION_ERRORS = (
    "box_quota_reached",
    "box_owner_quota_reached",
    "box_global_quota_reached",
    "conversation_burn_rate_ceiling",
    "owner_burn_rate_ceiling",
    "owner_budget_reached",
    "budget_reached",
    "box_label_taken",
)
"""Why no box is made."""

PROVIDER_ERRORS = (*ProviderCode, "box_request_failed")
"""What may become of a call of the API that asks the provider."""

STATUS_BY_CODE: Mapping[str, int] = {
    "box_quota_reached": 409,
    "box_owner_quota_reached": 409,
    "box_global_quota_reached": 409,
    "conversation_burn_rate_ceiling": 409,
    "owner_burn_rate_ceiling": 409,
    "owner_budget_reached": 409,
    "budget_reached": 409,
    "box_lifetime_reached": 409,
    "box_label_taken": 409,
    "box_stopped": 409,
    "box_not_ready": 409,
    "box_not_found": 404,
    "box_not_owned": 404,
    "conversation_not_found": 404,
    "fanout_not_found": 404,
    "leak_not_found": 404,
    "leak_handled": 409,
    "leak_busy": 409,
    "invalid_request": 422,
    "invalid_command": 422,
    "invalid_command_timeout": 422,
    "invalid_box_count": 422,
    "invalid_box_labels": 422,
    "invalid_box_label": 422,
    "box_api_rate_limited": 429,
    ProviderCode.NOT_CONFIGURED: 503,
    ProviderCode.UNREACHABLE: 503,
    ProviderCode.BILLING_REQUIRED: 402,
    ProviderCode.RATE_LIMITED: 429,
    ProviderCode.RESPONSE_INVALID: 502,
    ProviderCode.REFUSED: 502,
    ProviderCode.UNAUTHORIZED: 502,
    ProviderCode.MALFORMED_ID: 502,
    "box_request_failed": 502,
}
"""HTTP status of the API by `code`."""

PUBLIC_CODE: Mapping[str, str] = {
    "box_not_owned": "box_not_found",
    ProviderCode.RATE_LIMITED: "box_provider_rate_limited",
    ProviderCode.RESPONSE_INVALID: "box_provider_response_invalid",
    ProviderCode.REFUSED: "box_provider_request_refused",
    ProviderCode.UNAUTHORIZED: "box_provider_unauthorized",
    ProviderCode.MALFORMED_ID: "box_request_failed",
}
"""The code that the API shows, where it is not the error's own."""
