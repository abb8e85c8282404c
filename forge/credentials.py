"""The credential of an attempt: what it looks like, making a new secret, and knowing one again.

`oa_assignment_<assignment id>.<43 characters>`. It opens Git over HTTP on one repository and lets it push one branch, as long
as its attempt lives and who asked for it may write there. The plaintext is in no row: whoever hands it over makes a new one just then, and the one before is dead.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction
from django.db.models import F

from base.clock import database_now
from forge import limits
from forge.errors import InvalidCredential
from forge.models import Assignment, AssignmentCredential
from forge.selectors import may_still_write
from forge.states import LIVE

PREFIX = "oa_assignment_"
SHORTEST_SECRET, LONGEST_SECRET = 40, 100
_NOBODYS = bytes(32)


@dataclass(frozen=True, slots=True)
class AssignmentPrincipal:
    """What a good credential says, all of it read from the row."""

    assignment_id: UUID
    repository_id: UUID
    branch: str
    credential_id: UUID
    kind: str = "assignment"


@dataclass(frozen=True, slots=True)
class NewSecret:
    plaintext: str = field(repr=False)

    @property
    def digest(self) -> bytes:
        return digest_of(self.plaintext)

    @property
    def last_four(self) -> str:
        return self.plaintext[-4:]


def new_secret(assignment_id: UUID) -> NewSecret:
    return NewSecret(f"{PREFIX}{assignment_id}.{secrets.token_urlsafe(limits.SECRET_BYTES)}")


def digest_of(plaintext: str) -> bytes:
    """SHA-256 over the whole plaintext; a secret of 32 random bytes needs no key."""
    return hashlib.sha256(plaintext.encode("utf-8", "replace")).digest()


def authenticate(plaintext: str) -> AssignmentPrincipal:
    """The principal of this credential, while its attempt lives and its asker may write. Raises InvalidCredential, the same for every failure."""
    assignment_id = _assignment_id(plaintext)
    rows = AssignmentCredential.objects.select_related("assignment")
    credential = None if assignment_id is None else rows.filter(assignment_id=assignment_id).first()
    # Compared in any case: how long a failure takes says nothing of whether there is such an attempt.
    known = bytes(credential.token_digest) if credential is not None else _NOBODYS
    is_right = hmac.compare_digest(known, digest_of(plaintext if isinstance(plaintext, str) else ""))
    if credential is None or not is_right or not _is_usable(credential):
        raise InvalidCredential
    return AssignmentPrincipal(
        credential.assignment_id, credential.repository_id, credential.branch, credential.pk
    )


def mint(assignment_id: UUID) -> str | None:
    """A new secret in the place of the one before, for whoever hands it over now; None for an attempt that is over."""
    with transaction.atomic():
        assignment = Assignment.objects.select_for_update(of=("self",)).filter(pk=assignment_id).first()
        now = database_now()
        if assignment is None or assignment.is_terminal or assignment.deadline_at <= now:
            return None
        secret = new_secret(assignment_id)
        renewed = AssignmentCredential.objects.filter(assignment=assignment, revoked_at=None).update(
            token_digest=secret.digest,
            last_four=secret.last_four,
            minted_at=now,
            deliveries=F("deliveries") + 1,
        )
    return secret.plaintext if renewed else None


def is_credential_of(assignment_id: UUID, word: str) -> bool:
    """Whether this word is the secret part of the attempt's credential, living or dead."""
    digest = AssignmentCredential.objects.filter(assignment_id=assignment_id).values_list(
        "token_digest", flat=True
    )
    known = digest.first()
    return known is not None and hmac.compare_digest(
        bytes(known), digest_of(f"{PREFIX}{assignment_id}.{word}")
    )


def _assignment_id(plaintext: str) -> UUID | None:
    """The id that the text names if it has the form of a credential."""
    if (
        not isinstance(plaintext, str)
        or len(plaintext.encode("utf-8", "replace")) >= limits.CREDENTIAL_BYTES_ON_THE_WIRE
    ):
        return None
    if not plaintext.startswith(PREFIX):
        return None
    name, dot, secret = plaintext.removeprefix(PREFIX).partition(".")
    if not dot or not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        return None
    try:
        assignment_id = UUID(name)
    except ValueError:
        return None
    return assignment_id if str(assignment_id) == name else None


def _is_usable(credential: AssignmentCredential) -> bool:
    now = database_now()
    return (
        credential.revoked_at is None
        and credential.expires_at > now
        and credential.assignment.state in LIVE
        and credential.assignment.deadline_at > now
        and may_still_write(credential.assignment.requesting_principal.get("id"), credential.repository_id)
    )
