"""The calls of the provider's API that the product makes.

Every method raises ProviderError in one of its three kinds: Refused (it did not happen), Unknown (it may have
happened), RetryLater (it did not happen, the same may succeed later). Timeouts are the total time of one request, in
seconds. Only GETs are ever sent again; what creates, changes or runs something is sent once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from boxes.client.bodies import text
from boxes.client.classification import Answer, create_error, general_error, invalid, success
from boxes.client.command_calls import CommandCalls
from boxes.client.costs import Usage, parse_usage
from boxes.client.dialect import CREATED_ID, DIALECTS
from boxes.client.exchange import Call, Exchange
from boxes.client.gate import Gate
from boxes.client.listing import LISTED_STATES, MAXIMUM_PAGES, PAGE_SIZE, Listing, Page, parse_page, read_all
from boxes.client.observations import ProviderBox, parse_box, unwrapped
from boxes.conf import BoxApi, box_api
from boxes.errors import ProviderCode, Unknown

PASS_TRIES = 3
"""Requests of one GET in a reconcile pass, the first included."""

LISTING_SECONDS = 300.0
"""The longest that reading all pages may take, however healthy each page looks."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """An accepted deletion; `was_gone` if there was nothing left to delete."""

    operation_id: str | None
    was_gone: bool


class BoxClient(CommandCalls):
    """A client for the provider that `conf` names. Cheap to make; connections are pooled by thread behind it."""

    def __init__(
        self, conf: BoxApi, *, gate: Gate | None = None, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        exchange = Exchange(conf.base_url, conf.api_key, gate, conf.retry_delay_ms / 1000, sleep)
        super().__init__(exchange, DIALECTS[conf.dialect], conf.interactive_timeout_ms / 1000, sleep)
        self.conf = conf

    def create(
        self,
        idempotency_key: str,
        *,
        ttl_seconds: int | None,
        setup_script: str = "",
        env: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> ProviderBox:
        """Ask for a new box, without account secrets; equal arguments are equal bytes, as the key demands.

        `ttl_seconds` None turns the provider's own stop off. Raises Refused only where it is certain that no box was
        made; everything else, a success without an id included, is Unknown and is found again by the same key.
        """
        body: dict[str, Any] = {"ttlSeconds": ttl_seconds, "noEnv": True}
        body |= {"setupScript": setup_script} if setup_script else {}
        body |= {"env": dict(env)} if env else {}
        call = Call(
            "create",
            "POST",
            self._dialect.path(),
            timeout_seconds or self.conf.create_timeout_ms / 1000,
            json=body,
            headers={"Idempotency-Key": idempotency_key},
            door="start",
        )
        answer = self._exchange.send(call)
        document = success(answer, create_error)
        box = unwrapped(document)
        box_id = text(box, *CREATED_ID) or text(document, *CREATED_ID)
        if not box_id:
            raise invalid(answer, "no id")
        return parse_box(box, box_id)

    def get(self, box_id: str, *, tries: int = 1, timeout_seconds: float | None = None) -> ProviderBox:
        """Look at one box: by default one try in the time that a waiting person has."""
        seconds = timeout_seconds or self._interactive_seconds
        answer = self._exchange.read(Call("get", "GET", self._dialect.path(box_id), seconds), tries)
        box = _about(box_id, answer)
        if text(unwrapped(answer.document or {}), "id", "state", "status") is None:
            raise invalid(answer, "no box")
        return box

    def list_page(
        self,
        cursor: str | None = None,
        *,
        states: Iterable[str] | None = LISTED_STATES,
        limit: int = PAGE_SIZE,
        tries: int = PASS_TRIES,
        timeout_seconds: float | None = None,
    ) -> Page:
        """One page of at most `limit` (1 to 200) boxes in these states (None: in all)."""
        params = {"limit": str(limit)}
        params |= {"state": ",".join(states)} if states is not None else {}
        params |= {"cursor": cursor} if cursor else {}
        seconds = timeout_seconds or self.conf.reconciliation_receive_timeout_ms / 1000
        answer = self._exchange.read(Call("list", "GET", self._dialect.path(), seconds, params), tries)
        return parse_page(success(answer, general_error))

    def list_all(
        self,
        *,
        states: Iterable[str] | None = LISTED_STATES,
        tries: int = PASS_TRIES,
        timeout_seconds: float | None = None,
        maximum_pages: int = MAXIMUM_PAGES,
    ) -> Listing:
        """All boxes in these states, from the first page to the last. An incomplete list is an error."""
        wanted = tuple(states) if states is not None else None
        ends_at = time.monotonic() + LISTING_SECONDS

        def page(cursor: str | None) -> Page:
            if time.monotonic() > ends_at:
                raise Unknown(ProviderCode.UNREACHABLE, log_detail="the listing took too long")
            return self.list_page(cursor, states=wanted, tries=tries, timeout_seconds=timeout_seconds)

        return read_all(page, maximum_pages)

    def patch(
        self,
        box_id: str,
        *,
        name: str | None = None,
        ttl_seconds: int | None = None,
        timeout_seconds: float | None = None,
    ) -> ProviderBox:
        """Set the name, or let the provider stop the box `ttl_seconds` from now. Safe to ask for again."""
        if name is None and ttl_seconds is None:
            raise ValueError("nothing to change")
        body: dict[str, Any] = {"name": name} if name is not None else {}
        body |= {"ttlSeconds": ttl_seconds} if ttl_seconds is not None else {}
        seconds = timeout_seconds or self._interactive_seconds
        answer = self._exchange.send(Call("patch", "PATCH", self._dialect.path(box_id), seconds, json=body))
        return _about(box_id, answer)

    def stop(self, box_id: str, *, force: bool = False, timeout_seconds: float | None = None) -> ProviderBox:
        """Ask for the box to be stopped; `force` gives up its last snapshot. Safe to ask for again.

        The answer is the box as far as the provider showed it: accepted is not stopped, and a stop can be undone.
        """
        call = Call(
            "stop",
            "POST",
            self._dialect.path(box_id, "stop"),
            timeout_seconds or self.conf.stop_timeout_ms / 1000,
            json={"force": True} if force else None,
        )
        return _about(box_id, self._exchange.send(call))

    def delete(self, box_id: str, *, timeout_seconds: float | None = None) -> Deletion:
        """Delete a box and its disk for ever. A box that is not there is deleted already."""
        call = Call(
            "delete",
            "DELETE",
            self._dialect.path(box_id),
            timeout_seconds or self.conf.stop_timeout_ms / 1000,
            headers={"X-Ascii-Confirm-Delete": box_id},
        )
        answer = self._exchange.send(call)
        error = None if 200 <= answer.status < 300 else general_error(answer)
        if error is not None and error.code != ProviderCode.NOT_FOUND:
            raise error
        return Deletion(_operation_id(answer.document or {}), was_gone=error is not None)

    def usage(self, box_id: str, *, tries: int = 1, timeout_seconds: float | None = None) -> Usage:
        """What the provider has metered of the box. Gone with the box: read it after the stop, before a delete."""
        seconds = timeout_seconds or self._interactive_seconds
        answer = self._exchange.read(
            Call("usage", "GET", self._dialect.path(box_id, "usage"), seconds), tries
        )
        document = success(answer, general_error)
        _require_same(box_id, document, answer)
        return parse_usage(document)


def client(*, gate: Gate | None = None) -> BoxClient:
    """A client with the settings in force now."""
    return BoxClient(box_api(), gate=gate)


def _about(box_id: str, answer: Answer) -> ProviderBox:
    """The box that a successful answer shows. What it says of another box is no answer: neither its state nor its cost."""
    entry = unwrapped(success(answer, general_error))
    _require_same(box_id, entry, answer)
    return parse_box(entry, box_id)


def _require_same(box_id: str, entry: Mapping[str, Any], answer: Answer) -> None:
    if text(entry, *CREATED_ID) not in (None, box_id):
        raise invalid(answer, "another box")


def _operation_id(document: Mapping[str, Any]) -> str | None:
    for name in ("operation", "deletionOperation"):
        if isinstance(operation := document.get(name), dict):
            return text(operation, "id")
    return text(document, "operationId", "operation_id")
