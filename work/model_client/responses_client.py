"""OpenAI's Responses API, and whatever else speaks it, by the official client library."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import structlog
from openai import (
    APIConnectionError,
    APIError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    OpenAI,
    OpenAIError,
    Stream,
    Timeout,
)

from base.backoff import http_date, retry_after_seconds
from work.model_client.errors import ModelError, Trouble
from work.model_client.types import (
    Call,
    CallOutput,
    CallWritten,
    Done,
    Event,
    Item,
    ModelRequest,
    ModelText,
    Offer,
    Started,
    Text,
    Unsupported,
    UserText,
)

log = structlog.get_logger(__name__)

NO_KEY = "no-key"  # servers that want none ignore it
WRITE_SECONDS = 30.0
_SILENT_ITEMS = frozenset({"message", "reasoning", "function_call"})
_TELLING = frozenset({"response.created", "response.output_text.delta", "response.refusal.delta", "response.output_item.done",
                      "response.completed", "response.incomplete", "response.failed"})  # fmt: skip
_TRANSIENT = frozenset({"rate_limit_exceeded", "server_error", "vector_store_timeout"})
_OUT_OF_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class ResponsesClient:
    """Asks with streaming and keeps nothing at the server (`store` is false): the whole dialogue goes with each request."""

    def __init__(
        self, *, api_key: str, base_url: str, connect_seconds: float, silence_seconds: float
    ) -> None:
        self._openai = OpenAI(
            api_key=api_key or NO_KEY,
            base_url=base_url or "https://api.openai.com/v1",
            timeout=Timeout(
                silence_seconds, connect=connect_seconds, write=WRITE_SECONDS, pool=connect_seconds
            ),
            max_retries=0,  # the job is tried again, by its own count
        )

    def stream(self, request: ModelRequest) -> Iterator[Event]:
        """As `ModelClient.stream`."""
        try:
            with self._open(request) as stream:
                for event in stream:
                    yield from _told(event)
        except OpenAIError as error:
            raise _classified(error) from error
        except (ValueError, RecursionError, AttributeError, TypeError) as error:
            raise ModelError(Trouble.REFUSED, "invalid_provider_event") from error

    def _open(self, request: ModelRequest) -> Stream[object]:
        """By the library's way without models: to build those of request and events costs more than all else of an answer."""
        return self._openai.post(
            "/responses", body=_body(request), cast_to=object, stream=True, stream_cls=Stream[object]
        )


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "instructions": request.instructions,
        "input": [_item(item) for item in request.items],
        "stream": True,
        "store": False,
    }
    if request.offers:
        body |= {"tools": [_tool(offer) for offer in request.offers], "parallel_tool_calls": False}
    return body


def _item(item: Item) -> dict[str, Any]:
    match item:
        case UserText(text):
            return {"role": "user", "content": text}
        case ModelText(text):
            return {"role": "assistant", "content": text}
        case Call(call_id, name, arguments):
            return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
        case CallOutput(call_id, output):
            return {"type": "function_call_output", "call_id": call_id, "output": output}


def _tool(offer: Offer) -> dict[str, Any]:
    return {
        "type": "function",
        "name": offer.name,
        "description": offer.description,
        "parameters": dict(offer.parameters),
        "strict": False,
    }


def _told(event: Any) -> Iterator[Event]:
    """What one event of the stream says. Events that only say how far the server is say nothing."""
    match event:
        case {"type": "response.created", "response": {"id": response_id}}:
            yield Started(str(response_id))
        case {"type": "response.output_text.delta" | "response.refusal.delta", "delta": str(delta)}:
            yield Text(delta)
        case {"type": "response.output_item.done", "item": dict(item)}:
            yield from _item_told(item)
        case {"type": "response.completed", "response": dict(response)}:
            yield Done(str(response.get("id", "")), _usage(response))
        case {"type": "response.incomplete", "response": dict(response)}:
            raise ModelError(Trouble.REFUSED, _incomplete(response), usage=_usage(response))
        case {"type": "response.failed", "response": dict(response)}:
            error = response.get("error")
            raise _failed(error.get("code") if isinstance(error, dict) else None, _usage(response))
        case {"type": "error"}:
            raise _failed(cast("dict[str, Any]", event).get("code"))
        case {"type": str(kind)} if kind in _TELLING:
            raise ModelError(Trouble.REFUSED, "invalid_provider_event")


def _item_told(item: dict[str, Any]) -> Iterator[Event]:
    kind = item.get("type")
    if kind == "function_call":
        values = (item.get("call_id"), item.get("name"), item.get("arguments"))
        if not all(isinstance(value, str) for value in values) or not values[0] or not values[1]:
            raise ModelError(Trouble.REFUSED, "invalid_provider_event")
        call_id, name, arguments = cast("tuple[str, str, str]", values)
        item_id = item.get("id")
        yield CallWritten(call_id, name, arguments, item_id if isinstance(item_id, str) else None)
    elif kind not in _SILENT_ITEMS:
        yield Unsupported(str(kind)[:64])


def _incomplete(response: dict[str, Any]) -> str:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return "provider_content_filter" if reason == "content_filter" else "provider_incomplete"


def _usage(response: dict[str, Any]) -> dict[str, Any]:
    usage = response.get("usage")
    return usage if isinstance(usage, dict) else {}


def _failed(said: object, usage: dict[str, Any] | None = None) -> ModelError:
    code = said if isinstance(said, str) else None
    if code in _OUT_OF_MONEY:
        return ModelError(Trouble.REFUSED, "provider_quota_exhausted", usage=usage)
    kind = Trouble.RETRY_LATER if code is None or code in _TRANSIENT else Trouble.REFUSED
    return ModelError(
        kind, "rate_limited" if code == "rate_limit_exceeded" else "provider_error", usage=usage
    )


def _classified(error: OpenAIError) -> ModelError:
    """The library's error in our words; the server's text is not kept."""
    if isinstance(error, APIStatusError):
        return _of_status(error)
    log.info("model_call_failed", error=type(error).__name__)
    if isinstance(error, APITimeoutError):
        return ModelError(Trouble.UNKNOWN, "provider_timeout")
    if isinstance(error, APIConnectionError):
        return ModelError(Trouble.UNKNOWN, "transport")
    if isinstance(error, APIResponseValidationError):
        return ModelError(Trouble.REFUSED, "invalid_provider_event")
    return _failed(error.code if isinstance(error, APIError) else None)


def _of_status(error: APIStatusError) -> ModelError:
    status, code = error.status_code, cast("object", error.code)
    log.info("model_call_refused", status=status, code=str(code)[:64])
    if status == 429 and isinstance(code, str) and code in _OUT_OF_MONEY:
        return ModelError(Trouble.REFUSED, "provider_quota_exhausted")
    if status == 429:
        return ModelError(Trouble.RETRY_LATER, "rate_limited", retry_after_seconds=_retry_after(error))
    if status in {408, 409, 425} or status >= 500:
        return ModelError(Trouble.RETRY_LATER, "provider_failure", retry_after_seconds=_retry_after(error))
    if status in {401, 403}:
        return ModelError(Trouble.REFUSED, "provider_unauthorized")
    return ModelError(Trouble.REFUSED, "provider_refused")


def _retry_after(error: APIStatusError) -> float | None:
    headers = error.response.headers
    now = http_date(headers.get("Date")) or datetime.now(UTC)
    return retry_after_seconds(headers.get("Retry-After"), now)
