"""The secret that lets one attempt push one branch. Only its digest is kept."""

from __future__ import annotations

import uuid

import pgtrigger
from django.db import models
from django.db.models.functions import Now

from base.guards import Immutable, WriteOnce
from forge import limits
from forge.models.assignment import Assignment
from forge.models.repository import Repository
from forge.states import LIVE
from work.models import checks


class DiesWithItsAttempt(pgtrigger.Trigger):
    """A credential is revoked with its attempt and not before it."""

    when = pgtrigger.After
    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: type[models.Model]) -> str:
        return f"""if new.revoked_at is not null and exists (select 1 from forge_assignments
            where id = new.assignment_id and state in ({checks.listed(LIVE)}))
            then raise exception 'live assignment with a revoked credential'; end if; return null;"""  # noqa: S608


class AssignmentCredential(models.Model):
    """What is known of a credential: whose it is, what it opens, and until when. A new secret replaces the digest."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    assignment = models.OneToOneField(Assignment, on_delete=models.PROTECT, related_name="credential")
    token_digest = models.BinaryField(max_length=32, unique=True)
    last_four = models.CharField(max_length=4)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="+")
    branch = models.CharField(max_length=limits.BRANCH_BYTES)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    minted_at = models.DateTimeField(db_default=Now())
    deliveries = models.PositiveIntegerField(default=0, help_text="how often a new secret was handed over")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "forge_assignment_credentials"
        constraints = [
            checks.check("forge_assignment_credentials_digest_check", "octet_length(token_digest) = 32"),
            checks.check("forge_assignment_credentials_last_four_check", "length(last_four) = 4"),
        ]
        triggers = [
            Immutable(
                name="credential_1_identity",
                fields=["assignment", "repository", "branch", "expires_at", "created_at"],
                message="credential identity is immutable",
            ),
            WriteOnce(
                name="credential_2_revoked",
                fields=["revoked_at"],
                message="a revoked credential stays revoked",
            ),
            pgtrigger.Trigger(
                name="credential_3_dead",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__revoked_at__isnull=False)
                & pgtrigger.Q(new__token_digest__df=pgtrigger.F("old__token_digest")),
                func="raise exception 'a revoked credential gets no new secret';",
            ),
            DiesWithItsAttempt(name="credential_4_attempt"),
            pgtrigger.Protect(name="credential_5_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"…{self.last_four}"
