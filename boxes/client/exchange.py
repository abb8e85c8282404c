"""One request to the provider and what came back, with a log line that holds neither header nor body."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from base import connections, http, measures
from base.backoff import http_date, retry_after_seconds
from boxes.client.bodies import json_object
from boxes.client.classification import REPEATED_STATUSES, Answer
from boxes.client.gate import Gate
from boxes.errors import ProviderCode, ProviderError, Refused, Unknown

USER_AGENT = "openagents-boxes"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """One thing to ask for. `door` is the gate's door; `name` is what the log says."""

    name: str
    method: str
    path: str
    timeout_seconds: float
    params: Mapping[str, str] | None = None
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None
    door: str = "other"


class Exchange:
    """Sends calls to one provider with one key."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        gate: Gate | None = None,
        retry_delay_seconds: float = 0.0,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._gate = gate
        self._retry_delay_seconds = retry_delay_seconds
        self._sleep = sleep

    def read(self, call: Call, tries: int) -> Answer:
        """Send a GET up to `tries` times while the transport fails or the status invites it; the last answer.

        An answer with Retry-After is the last one. Each request has the call's whole time.
        """
        for number in range(1, tries):
            try:
                answer = self.send(call)
            except ProviderError as error:
                if error.code != ProviderCode.UNREACHABLE:
                    raise
            else:
                if answer.status not in REPEATED_STATUSES or answer.retry_after_seconds is not None:
                    return answer
            if self._retry_delay_seconds:
                self._sleep(self._retry_delay_seconds * 2 ** (number - 1))
        return self.send(call)

    def send(self, call: Call) -> Answer:
        """One request, whole answer or Unknown `box_unreachable` / `box_response_invalid`; any status is an answer.

        Raises Refused `box_not_configured` without a base URL or a key, and RetryLater while the gate is closed; in
        both cases nothing is sent.
        """
        if not self._api_key or not self._base_url:
            raise Refused(ProviderCode.NOT_CONFIGURED, log_detail="no base URL or no key")
        if self._gate is not None:
            self._gate.check(call.door)
        connections.release_to_pool()  # a slow provider must not use up the connections of a web process
        reply = self._whole_reply(call)
        answer = _read(reply)
        self._note(call, answer, reply.elapsed_ms)
        return answer

    def _whole_reply(self, call: Call) -> http.Reply:
        started = time.perf_counter()
        try:
            reply = self._request(call)
        except http.CallFailed as error:
            too_large = isinstance(error, http.BodyTooLarge)
            outcome = "too_large" if too_large else "unreachable"
            measures.provider_call(call.name, outcome, time.perf_counter() - started)
            code = ProviderCode.RESPONSE_INVALID if too_large else ProviderCode.UNREACHABLE
            raise self._failed(call, code, error) from error
        outcome = measures.status_outcome(reply.status)
        measures.provider_call(call.name, outcome, time.perf_counter() - started)
        return reply

    def _request(self, call: Call) -> http.Reply:
        headers = {
            "Authorization": f"Bearer {self._api_key}",
            "User-Agent": USER_AGENT,
            **(call.headers or {}),
        }
        if call.json is None and call.method in {"POST", "PATCH"}:
            headers["Content-Type"] = "application/json"
        return http.call(
            call.method,
            self._base_url + call.path,
            deadline_seconds=call.timeout_seconds,
            headers=headers,
            params=call.params,
            json=call.json,
        )

    def _failed(self, call: Call, code: ProviderCode, error: http.CallFailed) -> ProviderError:
        outcome = type(error).__name__
        log.warning("provider_call", call=call.name, path=call.path, outcome=outcome, reason=error.reason)
        return Unknown(code, log_detail=outcome, provider_status=getattr(error, "status", None))

    def _note(self, call: Call, answer: Answer, elapsed_ms: int) -> None:
        if self._gate is not None and answer.retry_after_seconds is not None and not answer.is_success:
            self._gate.close(call.door, answer.retry_after_seconds)
        outcome = "ok" if answer.is_success else answer.code
        level = "debug" if answer.is_success and (call.method == "GET" or call.name == "command") else "info"
        write = getattr(log, "warning" if answer.status >= 500 else level)
        write(
            "provider_call",
            call=call.name,
            path=call.path,
            outcome=outcome,
            status=answer.status,
            ms=elapsed_ms,
        )


def _read(reply: http.Reply) -> Answer:
    now = http_date(reply.headers.get("Date")) or datetime.now(UTC)
    pause = retry_after_seconds(reply.headers.get("Retry-After"), now)
    return Answer(reply.status, json_object(reply.body), pause)
