"""Answering a push: the list of refs first, then the pack to Git, then the question of the hook, then the receipt.

The client hears of success only after the receipt is committed. Where it cannot be written the refs are put back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog
from django.db import DatabaseError, InterfaceError, transaction
from django.http import HttpResponse, HttpResponseBase

from base import connections
from base.clock import database_now
from base.faults import declare, fault_point
from forge import closing, git, pushes, receipts
from forge.conf import forge_settings
from forge.models import PushIntent, Repository
from forge.names import ref_of
from forge.smart_http import ref_list
from forge.smart_http.access import Caller, Kind
from forge.smart_http.backend import BadAnswer, Call, Timeout
from forge.smart_http.bodies import RequestBody, within
from forge.smart_http.callers import Presented
from forge.smart_http.exchange import Exchange
from forge.smart_http.ref_list import RefList, RefUpdate

log = structlog.get_logger(__name__)

ASKED = declare("forge.asked", "a push is unpacked and checked; nothing is decided, no ref has moved")
ALLOWED = declare("forge.allowed", "a push may move its refs; Git has not been told")
MOVED = declare("forge.moved", "the refs of a push have moved; there is no receipt")


def answer(
    repository: Repository, call: Call, body: RequestBody, shown: Presented, who: Caller
) -> HttpResponseBase:
    """Take one push. Raises BadRefList, BodyTooLarge, BodyTooSlow and BodyBroken; no ref has moved then."""
    connections.release()  # an upload may take an hour
    started, seconds = time.monotonic(), forge_settings().push_seconds
    listed = within(seconds, body, lambda: ref_list.read(body.exactly))
    if text := _beside_its_branch(who, listed):
        return _text(403, text)
    push = _Push(repository, shown, who, started)
    pieces = _with_list(listed, body)
    with Exchange(repository, call, pieces, seconds=seconds, stop=body.stop) as exchange:
        try:
            updates = exchange.until_asked()
            if updates is not None:
                fault_point(ASKED)
                return push.settle(exchange, updates)
            return exchange.response()
        except (Timeout, BadAnswer):
            log.warning("push_did_not_end", repository=str(repository.pk))
            body.stop()
            return _text(503, "git did not take the push")


class _Push:
    """The decisive part of one push."""

    def __init__(self, repository: Repository, shown: Presented, who: Caller, started: float) -> None:
        self.repository, self.shown, self.who, self.started = repository, shown, who, started
        self.path = git.path_of(repository.storage_key)
        self.moved: receipts.Changes = {}
        self.names: list[str] = []
        self.about: receipts.Changes | None = None  # what was noted; set once refs may move

    def settle(self, exchange: Exchange, updates: Sequence[RefUpdate]) -> HttpResponseBase:
        """Decide, let Git do it, write the receipt, and only then answer."""
        try:
            if PushIntent.objects.filter(repository=self.repository).exists():
                pushes.settle_left_behind(self.repository.pk)
            decision = self._decide(exchange, updates)
        except Exception:
            log.exception("push_not_recorded", repository=str(self.repository.pk))
            return self._give_up(exchange)
        if decision.reasons:
            log.info("push_refused", repository=str(self.repository.pk), by=self.who.name)
            exchange.refuse(decision.reasons)
            exchange.until_end()
        elif self.moved and decision.who is not None:
            closing.close_by_push(self.repository, decision.who, self.moved)
        return exchange.response()

    def _decide(self, exchange: Exchange, updates: Sequence[RefUpdate]) -> pushes.Decision:
        """The transaction. Its end, whichever it is, comes after the refs have moved or never will."""
        with transaction.atomic():
            self.repository = repository = pushes.lock(self.repository.pk)  # as it is now
            decision = pushes.judge(repository, self.shown, self.who, updates)
            if decision.reasons or decision.who is None:
                return decision
            self.names = [update.ref for update in updates]
            before = git.refs(self.path, self.names)
            about = {one.ref: {"old": before.get(one.ref), "new": one.new} for one in updates}
            pushes.note_intent(repository, decision.who.name, about)
            fault_point(ALLOWED)
            self.about = about
            exchange.allow()
            self._until_end(exchange)
            self.moved = receipts.changes(before, git.refs(self.path, self.names))
            fault_point(MOVED)
            if self.moved:
                self._record(repository, decision.who)
            pushes.forget_intent(repository)
        return decision

    def _until_end(self, exchange: Exchange) -> None:
        """A Git that hangs is ended; what it has moved by then counts, and the client is told that something was wrong."""
        try:
            exchange.until_end()
        except (Timeout, BadAnswer):
            exchange.backend.kill()
            log.exception("git_hung_while_refs_moved", repository=str(self.repository.pk))

    def _record(self, repository: Repository, who: Caller) -> None:
        duration = int((time.monotonic() - self.started) * 1000)
        receipts.append(repository, who.name, self.moved, duration_ms=duration, now=database_now())

    def _give_up(self, exchange: Exchange) -> HttpResponseBase:
        """Nothing was recorded, as far as is known: no ref may have moved. Where they cannot be put back now, what was noted
        before tells the next one what is to be recorded."""
        if self.about is None:
            exchange.refuse(["the server cannot record the push now; push again later"])
            exchange.until_end()
            return exchange.response()
        exchange.backend.kill()
        exchange.backend.end()
        try:
            is_undone = pushes.undo(self.repository.pk, self.about)
        except (git.GitFailed, DatabaseError, InterfaceError):
            log.exception("refs_not_restored", repository=str(self.repository.pk))
            return _text(503, "the push could not be recorded; fetch to see what became of it")
        if not is_undone:
            return exchange.response()
        return _text(503, "the push could not be recorded and was undone; push again")


def _beside_its_branch(who: Caller, listed: RefList) -> str | None:
    """Why the credential of an attempt is refused before its pack is read; None if it is not."""
    if who.kind is not Kind.ASSIGNMENT or who.branch is None:
        return None
    others = sorted({update.ref for update in listed.updates} - {ref_of(who.branch)})
    if not others:
        return None
    return f"this credential may push {ref_of(who.branch)} and nothing else, not {', '.join(others[:5])}"


def _with_list(listed: RefList, body: RequestBody) -> Callable[[], bytes]:
    """The body from its beginning, piece by piece."""
    first = [listed.raw]
    return lambda: first.pop() if first else body.read()


def _text(status: int, text: str) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
