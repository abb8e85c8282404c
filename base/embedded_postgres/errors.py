"""What can go wrong with the embedded server, each said in one sentence that names what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.errors import CodedError


class EmbeddedPostgresError(CodedError):
    """The embedded PostgreSQL could not be used. `code` names the cause, `detail` is the sentence to show.

    Codes: `not_installed, binaries_unusable, no_account, cannot_switch_account, wrong_owner, folder_unusable,
    not_a_cluster, version_mismatch, initdb_failed, start_failed, start_timeout, held_elsewhere, will_not_stop`.
    """

    code = "embedded_postgres"


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn errors of the operating system about the files in `folder` (no permission, no space) into a sentence."""
    try:
        yield
    except OSError as error:
        place = error.filename or folder
        raise EmbeddedPostgresError(
            "folder_unusable", f"{place} cannot be used: {error.strerror}."
        ) from error
