"""What is no copy, or cannot be read or written, is told as that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openagents_site.backups import BackupFailed
from openagents_site.backups.copies import backup, verify

WHOLE = {"format": 1, "made_at": "now", "server_version": 17, "files": {}, "migrations": [], "rows": {}}


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ("[]", "is damaged"),
        ("{", "is damaged"),
        ("[" * 100_000, "is damaged"),
        (json.dumps(WHOLE | {"more": 1}), "is damaged"),
        (json.dumps({"format": 1}), "is damaged"),
        (json.dumps(WHOLE), "is damaged"),
        (json.dumps(WHOLE | {"files": []}), "is damaged"),
    ],
    ids=["a list", "half", "deep", "a field more", "fields less", "files less", "no files"],
)
def test_a_manifest_of_another_form_is_damaged(tmp_path: Path, manifest: str, why: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)

    with pytest.raises(BackupFailed, match=why):
        verify(tmp_path)


def test_what_cannot_be_read_or_written_is_told_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "copy" / "manifest.json").mkdir(parents=True)

    with pytest.raises(BackupFailed, match="holds no whole copy"):
        verify(tmp_path / "file")
    with pytest.raises(BackupFailed, match="cannot be used: Is a directory"):
        verify(tmp_path / "copy")
    with pytest.raises(BackupFailed, match="cannot be used: Not a directory"):
        backup(tmp_path / "file" / "copy")
