"""The channel of a machine: what was said in both directions and how far each side has heard it."""

from __future__ import annotations

import uuid

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from work.channel import limits
from work.models import checks
from work.models.guards import NeverDecreases
from work.models.machine import Machine


class MachineChannel(models.Model):
    """How far both sides of a machine's channel have heard each other; one row a machine, from its first connection."""

    machine = models.OneToOneField(
        Machine, on_delete=models.PROTECT, related_name="channel", primary_key=True
    )
    epoch = models.BigIntegerField(default=0, help_text="grows with each connection; older ones are refused")
    received_seq = models.BigIntegerField(default=0, help_text="the last frame of the machine that was taken")
    sent_seq = models.BigIntegerField(default=0, help_text="the last number given to a frame for the machine")
    connected_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True, help_text="when the machine said goodbye")

    class Meta:
        db_table = "machine_channels"
        constraints = [
            checks.check(
                "machine_channels_numbers_check", "epoch >= 0 and received_seq >= 0 and sent_seq >= 0"
            )
        ]
        triggers = [
            NeverDecreases(
                name=f"channel_{field}", field=field, message=f"{field} of a machine channel never decreases"
            )
            for field in ("epoch", "received_seq", "sent_seq")
        ]

    def __str__(self) -> str:
        return f"channel {self.epoch} of {self.machine_id}"


class MachineFrame(models.Model):
    """Something to tell a machine, until it has said that it heard it. Its number is given when it is first handed out:
    numbers that were given at insert could be heard out of the order of their commits."""

    id = models.BigAutoField(primary_key=True)
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="frames")
    seq = models.BigIntegerField(null=True, blank=True)
    kind = models.CharField(max_length=16)
    body = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "machine_frames"
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["machine", "seq"], name="machine_frames_seq_index"),
            checks.check("machine_frames_body_check", checks.at_most("body", limits.FRAME_BYTES)),
        ]
        indexes = [models.Index(fields=["machine", "id"], name="machine_frames_machine_index")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


class MachineRequest(models.Model):
    """A question to a connected machine that somebody waits for the answer of; kept for an hour."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="requests")
    kind = models.CharField(max_length=16)
    answer = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "machine_requests"
        ordering = ["-created_at"]
        constraints = [
            checks.check("machine_requests_answer_check", checks.at_most("answer", limits.FRAME_BYTES)),
            models.CheckConstraint(
                condition=Q(answer__isnull=True, answered_at__isnull=True)
                | Q(answer__isnull=False, answered_at__isnull=False),
                name="machine_requests_shape_check",
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="machine_requests_age_index")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.machine_id}"
