"""One try: a POST to a checked address, with one deadline, no redirects, and next to nothing read."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

from base import http
from base.backoff import http_date, retry_after_seconds
from base.http_transport import AddressRefused
from openagents_site.webhooks.conf import webhook_settings
from openagents_site.webhooks.errors import InvalidTarget
from openagents_site.webhooks.rules import LONGEST_RETRY_AFTER_SECONDS, Answer
from openagents_site.webhooks.targets import checked_url, permitted

READ_BYTES = 4096
"""What is read of an answer's body, and thrown away."""


def post(url: str, body: str, headers: dict[str, str]) -> Answer:
    """Send it, and say how it was answered. Never raises for what a receiver does.

    The name is looked up now, and the connection goes to one of the addresses that were judged: a name that changes its
    address in between changes nothing.
    """
    started = time.monotonic()
    try:
        reply = http.call(
            "POST",
            checked_url(url),
            deadline_seconds=webhook_settings().timeout_ms / 1000,
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "OpenAgents-Boxes", **headers},
            body=body.encode(),
            maximum_body_bytes=READ_BYTES,
            permitted=permitted,
        )  # fmt: skip
    except InvalidTarget:
        return Answer(error="url_refused", duration_ms=_since(started))
    except http.BodyTooLarge as large:
        return Answer(status=large.status, duration_ms=_since(started))
    except http.CallFailed as failure:
        return Answer(error=_error(failure), duration_ms=_since(started))
    return Answer(status=reply.status, retry_after_seconds=_asked(reply), duration_ms=_since(started))


def chance() -> float:
    """What spreads the pauses."""
    return random.random()  # noqa: S311 - nothing secret


def _asked(reply: http.Reply) -> float | None:
    now = http_date(reply.headers.get("Date")) or datetime.now(UTC)
    return retry_after_seconds(reply.headers.get("Retry-After"), now, LONGEST_RETRY_AFTER_SECONDS)


def _error(failure: http.CallFailed) -> str:
    """One of few words, whatever it was in detail."""
    causes = [failure, *_causes(failure)]
    if any(isinstance(cause, AddressRefused) for cause in causes):
        return "address_refused"
    if isinstance(failure, http.DeadlineExceeded):
        return "timeout"
    names = {type(cause).__name__ for cause in causes}
    if names & {"SSLError", "SSLCertVerificationError"}:
        return "tls_failed"
    if names & {"NameResolutionError", "gaierror"}:
        return "name_not_found"
    return "connection_failed"


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    step = error.__cause__ or error.__context__
    while step is not None and step not in found:
        found.append(step)
        step = step.__cause__ or step.__context__
    return found


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
