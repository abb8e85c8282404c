"""What was pushed: one receipt for each push that moved a ref, each linked to the one before it."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models.functions import Now

from forge.models.repository import Repository
from work.models import checks

GENESIS = bytes(32)
"""What the first receipt of a repository is linked to."""


class GoesOn(pgtrigger.Trigger):
    """A receipt follows the one before it: the next sequence, linked to its link."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert

    def get_func(self, model: type[models.Model]) -> str:
        return """if not coalesce(case when new.sequence = 0 then new.previous_link = decode(repeat('00', 32), 'hex')
            else new.previous_link = (select link from forge_pushes
                where repository_id = new.repository_id and sequence = new.sequence - 1) end, false)
            then raise exception 'push receipt does not follow the one before it'; end if; return new;"""


class Push(models.Model):
    """The receipt of one push."""

    id = models.BigAutoField(primary_key=True)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="pushes")
    sequence = models.PositiveIntegerField(help_text="from 0, without gaps, in each repository")
    principal = models.CharField(
        max_length=100, help_text="user:<id>, assignment:<id>, machine:<id> or operator:<what>"
    )
    refs = models.JSONField(help_text="ref -> {old, new}; null where it was created or deleted")
    duration_ms = models.PositiveIntegerField()
    recovered = models.BooleanField(
        default=False, help_text="written after the fact: the process that took the push had died"
    )
    recorded_at = models.DateTimeField()
    previous_link = models.BinaryField(max_length=32)
    link = models.BinaryField(max_length=32)

    class Meta:
        db_table = "forge_pushes"
        verbose_name_plural = "pushes"
        ordering = ["-sequence"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "sequence"], name="forge_pushes_sequence_index"),
            checks.check(
                "forge_pushes_links_check", "octet_length(previous_link) = 32 and octet_length(link) = 32"
            ),
            checks.check(
                "forge_pushes_refs_check",
                "case when jsonb_typeof(refs) = 'object' then refs <> '{}'::jsonb else false end",
            ),
        ]
        indexes = [models.Index(fields=["principal", "-id"], name="forge_pushes_principal_index")]
        triggers = [
            GoesOn(name="push_1_chain"),
            pgtrigger.Protect(name="push_2_kept", operation=pgtrigger.Update | pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.sequence} by {self.principal}"


class PushIntent(models.Model):
    """The push whose refs may be moving now. What is left of a process that died is settled from it by the next one."""

    repository = models.OneToOneField(
        Repository, on_delete=models.PROTECT, related_name="push_intent", primary_key=True
    )
    principal = models.CharField(max_length=100)
    updates = models.JSONField(help_text="ref -> {old, new} as they are to become")
    started_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "forge_push_intents"
        verbose_name = "push under way"
        verbose_name_plural = "pushes under way"

    def __str__(self) -> str:
        return f"push by {self.principal}"
