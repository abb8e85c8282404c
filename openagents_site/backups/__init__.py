"""Copies of an installation: the database and the repositories, with a manifest by which a copy is checked before it is used."""

from __future__ import annotations

from base.errors import CodedError


class BackupFailed(CodedError):
    """The copy could not be made or read."""

    code = "backup_failed"
