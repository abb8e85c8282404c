"""The moment in which refs move: one push of a repository at a time, checked against the rows as they are now.

The right to move refs is given inside a transaction that holds the repository's lock and, for an attempt, its row: who
ends the attempt waits until the refs have moved, and after that none moves any more. What is about to move is noted by a connection of
its own first: if this process dies in the middle, the next one writes the receipt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from django.db import connection, transaction
from psycopg.types.json import Jsonb

from base import notify
from base.clock import database_now
from base.locks import hold_for_transaction
from forge import git, receipts
from forge.models import Assignment, Push, PushIntent, Repository
from forge.smart_http.access import Answer, Caller, decide, refusals
from forge.smart_http.callers import Presented, WrongCredential, caller
from forge.smart_http.ref_list import RefUpdate
from forge.states import Operation

log = structlog.get_logger(__name__)

LOCK_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Decision:
    """Who pushes, and why they may not; may they, `reasons` is empty."""

    who: Caller | None
    reasons: Sequence[str] = ()


def lock(repository_id: UUID) -> Repository:
    """Wait for the repository's turn; it lasts until the transaction ends. Returns the current row."""
    with connection.cursor() as cursor:
        cursor.execute("select set_config('lock_timeout', %s, true)", [f"{LOCK_TIMEOUT_MS}ms"])
    hold_for_transaction(f"forge repository {repository_id}")
    return Repository.objects.select_related("owner").get(pk=repository_id)


def judge(repository: Repository, shown: Presented, before: Caller, updates: Iterable[RefUpdate]) -> Decision:
    """Look again, under the lock, whether the one who showed this credential may make these updates now."""
    if before.assignment_id is not None:
        # Held until the refs have moved: who ends the attempt comes before or after, never between.
        Assignment.objects.select_for_update(of=("self",)).filter(pk=before.assignment_id).first()
    try:
        who = caller(shown, repository)
    except WrongCredential:
        return Decision(None, ["the credential is not valid any more"])
    if not repository.is_ready or decide(who, repository, Operation.WRITE) is not Answer.YES:
        return Decision(who, ["this credential may not push any more"])
    return Decision(who, refusals(who, repository, updates))


def note_intent(repository: Repository, principal: str, about: receipts.Changes) -> None:
    """Note, committed at once, what is about to move: ref -> {old, new}, old as it really is."""
    with notify.own_connection() as link:
        link.execute(
            """insert into forge_push_intents (repository_id, principal, updates, started_at)
               values (%s, %s, %s, clock_timestamp())
               on conflict (repository_id) do update set principal = excluded.principal, updates = excluded.updates,
                   started_at = excluded.started_at""",
            [repository.pk, principal, Jsonb(dict(about))],
        )


def forget_intent(repository: Repository) -> None:
    PushIntent.objects.filter(repository=repository).delete()


def undo(repository_id: UUID, about: receipts.Changes) -> bool:
    """Put back the refs of a push that was noted as `about` and could not be recorded. False if it stands: it was recorded
    after all, by a commit whose answer was lost or by whoever came next. Raises GitFailed."""
    with transaction.atomic():
        repository = lock(repository_id)
        intent = PushIntent.objects.filter(repository=repository).first()
        if intent is None or intent.updates != about:
            return False
        git.restore_refs(git.path_of(repository.storage_key), _moved(repository, intent))
        intent.delete()
    return True


def settle_left_behind(repository_id: UUID) -> Push | None:
    """Write the receipt of a push whose process died while its refs moved; None if there was none, or nothing moved."""
    with transaction.atomic():
        repository = lock(repository_id)
        intent = PushIntent.objects.filter(repository=repository).first()
        if intent is None:
            return None
        now, moved = database_now(), _moved(repository, intent)
        push = _recovered(repository, intent, moved, now) if moved else None
        intent.delete()
    log.warning("push_recovered", repository=str(repository_id), moved=sorted(moved))
    return push


def settle_all_left_behind() -> int:
    """The same for every repository where such a push is older than the longest that one can take; returns how many.

    One that cannot be settled costs only itself.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "select repository_id from forge_push_intents where started_at < clock_timestamp() - interval '2 minutes'"
        )
        left = [row[0] for row in cursor.fetchall()]
    return sum(_settled(repository_id) for repository_id in left)


def _settled(repository_id: UUID) -> bool:
    try:
        settle_left_behind(repository_id)
    except Exception:
        log.exception("push_not_recovered", repository=str(repository_id))
        return False
    return True


def _moved(repository: Repository, intent: PushIntent) -> receipts.Changes:
    """What of a noted push has become of the refs as they are now."""
    actual = git.refs(git.path_of(repository.storage_key), list(intent.updates))
    return {
        ref: change
        for ref, change in intent.updates.items()
        if change["old"] != change["new"] and actual.get(ref) == change["new"]
    }


def _recovered(repository: Repository, intent: PushIntent, moved: receipts.Changes, now: datetime) -> Push:
    duration = int((now - intent.started_at).total_seconds() * 1000)
    return receipts.append(
        repository, intent.principal, moved, duration_ms=max(0, duration), now=now, recovered=True
    )
