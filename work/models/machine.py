"""A user's own computers, and how they are paired."""

from __future__ import annotations

import uuid

import pghistory
import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from base.guards import Frozen, Immutable, Moves, WriteOnce
from work import limits
from work.models import checks
from work.states import OPEN_PAIRINGS, MachineStatus, MachineTier, PairingStatus

ROOTS_SHAPE = f"""case when jsonb_typeof(roots) = 'array' then jsonb_array_length(roots) <= {limits.ROOTS}
    and not jsonb_path_exists(roots, '$[*] ? (@.type() != "string")')
    and octet_length(roots::text) <= {limits.ROOTS * (limits.ROOT_BYTES * 6 + 4)} else false end"""
PAIRING_MOVES = [
    ("pending", "approved"),
    ("pending", "expired"),
    ("approved", "claimed"),
    ("approved", "expired"),
]


@pghistory.track(
    pghistory.InsertEvent(level=pgtrigger.Statement),
    pghistory.UpdateEvent(
        level=pgtrigger.Statement,
        condition=pgtrigger.AnyChange("status", "name", "tier", "scoped_forge_credentials_enabled"),
    ),
    fields=["status", "name", "tier", "scoped_forge_credentials_enabled", "revoked_at"],
    model_name="MachineHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "machines_history"},
)
class Machine(models.Model):
    """A computer that its owner paired. Of its token only the digest is kept."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="machines")
    name = models.CharField(max_length=limits.MACHINE_NAME_CHARACTERS)
    tier = models.CharField(max_length=7, choices=MachineTier.choices)
    platform = models.CharField(max_length=limits.PLATFORM_CHARACTERS, blank=True, default="")
    agent_version = models.CharField(max_length=limits.PLATFORM_CHARACTERS, blank=True, default="")
    roots = models.JSONField(default=list, help_text="folders that agents may work in")
    token_digest = models.BinaryField(max_length=32, unique=True)
    token_expires_at = models.DateTimeField()
    status = models.CharField(max_length=7, choices=MachineStatus.choices, default=MachineStatus.ACTIVE)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    last_probe = models.JSONField(null=True, blank=True)
    scoped_forge_credentials_enabled = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "machines"
        ordering = ["-created_at", "-id"]
        permissions = [("revoke_machine", "Can revoke machine")]
        constraints = [
            checks.check("machines_name_check", "btrim(name) <> ''"),
            checks.one_of("machines_tier_check", "tier", MachineTier.values),
            checks.check("machines_roots_check", ROOTS_SHAPE),
            checks.check("machines_token_digest_check", "octet_length(token_digest) = 32"),
            checks.check("machines_token_expiry_check", "token_expires_at > created_at"),
            checks.check("machines_probe_check", checks.at_most("last_probe", limits.PROBE_BYTES)),
            checks.check(
                "machines_status_check",
                "(status = 'active' and revoked_at is null) or (status = 'revoked' and revoked_at is not null)",
            ),
        ]
        indexes = [
            models.Index(fields=["user"], condition=Q(status="active"), name="machines_active_index"),
            models.Index(fields=["user", "-created_at", "-id"], name="machines_list_index"),
        ]
        triggers = [
            Immutable(
                name="machine_1_identity",
                fields=["user", "token_digest", "created_at"],
                message="machine identity is immutable",
            ),
            Moves(
                name="machine_2_moves",
                field="status",
                moves=[("active", "revoked")],
                message="invalid {old} machine transition",
            ),
            WriteOnce(
                name="machine_3_once", fields=["revoked_at"], message="a revoked machine stays revoked"
            ),
            pgtrigger.Protect(name="machine_4_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return self.name


class MachinePairing(models.Model):
    """A computer that asks to be paired. Code and poll secret are kept as digests; the token is sealed until it is
    fetched, and is then gone."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    code_digest = models.BinaryField(max_length=32, unique=True)
    poll_secret_digest = models.BinaryField(max_length=32)
    name = models.CharField(max_length=limits.MACHINE_NAME_CHARACTERS)
    tier = models.CharField(max_length=7, choices=MachineTier.choices)
    platform = models.CharField(max_length=limits.PLATFORM_CHARACTERS, blank=True, default="")
    agent_version = models.CharField(max_length=limits.PLATFORM_CHARACTERS, blank=True, default="")
    roots = models.JSONField(default=list)
    status = models.CharField(max_length=8, choices=PairingStatus.choices, default=PairingStatus.PENDING)
    machine = models.OneToOneField(
        Machine, on_delete=models.PROTECT, related_name="pairing", null=True, blank=True
    )
    sealed_token = models.BinaryField(max_length=256, null=True, blank=True)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "machine_pairings"
        verbose_name = "pairing"
        ordering = ["-created_at", "-id"]
        constraints = [
            checks.check("machine_pairings_name_check", "btrim(name) <> ''"),
            checks.one_of("machine_pairings_tier_check", "tier", MachineTier.values),
            checks.one_of("machine_pairings_status_check", "status", PairingStatus.values),
            checks.check("machine_pairings_roots_check", ROOTS_SHAPE),
            checks.check(
                "machine_pairings_digests_check",
                "octet_length(code_digest) = 32 and octet_length(poll_secret_digest) = 32",
            ),
            checks.check("machine_pairings_expiry_check", "expires_at > created_at"),
            checks.check(
                "machine_pairings_shape_check",
                """case status when 'pending' then machine_id is null and sealed_token is null
                   when 'approved' then machine_id is not null and sealed_token is not null
                   when 'claimed' then machine_id is not null and sealed_token is null
                   else sealed_token is null end""",
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"],
                condition=Q(status__in=[status.value for status in OPEN_PAIRINGS]),
                name="machine_pairings_open_index",
            )
        ]
        triggers = [
            Immutable(
                name="pairing_1_identity",
                fields=["code_digest", "poll_secret_digest", "name", "tier", "platform", "agent_version", "roots",
                        "expires_at", "created_at"],
                message="machine pairing identity is immutable",
            ),
            Moves(
                name="pairing_2_moves",
                field="status",
                moves=PAIRING_MOVES,
                message="invalid {old} machine pairing transition",
            ),
            Frozen(
                name="pairing_3_ended",
                field="status",
                states=["claimed", "expired"],
                fields=["machine", "sealed_token"],
                message="terminal machine pairing is immutable",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.name} ({self.status})"
