"""What can be wrong with the place where an installation keeps its files, each said in one sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.errors import CodedError


class StateRootError(CodedError):
    """The state folder cannot be used. `code` names the cause, `detail` is the sentence to show.

    Codes: `not_writable, no_space, not_a_directory, wrong_owner, not_empty, unreachable, bad_location, bad_name, unusable`.
    """

    code = "state_root"


_CAUSES = {
    errno.EACCES: ("not_writable", "is not writable for this account"),
    errno.EPERM: ("not_writable", "is not writable for this account"),
    errno.EROFS: ("not_writable", "is on a read-only file system"),
    errno.ENOSPC: ("no_space", "is on a file system without free space"),
    errno.EDQUOT: ("no_space", "is on a file system where this account's quota is used up"),
    errno.ENOTDIR: ("not_a_directory", "is not a folder, or lies below something that is not one"),
    errno.EEXIST: ("not_a_directory", "is not a folder"),
    errno.ELOOP: ("wrong_owner", "is a link where a plain file or folder is expected"),
}


def sentence_for(error: OSError, path: Path) -> StateRootError:
    """The refusal that an error of the operating system stands for, about `path`."""
    fallback = ("unusable", f"cannot be used ({os.strerror(error.errno) if error.errno else error})")
    code, cause = _CAUSES.get(error.errno or 0, fallback)
    return StateRootError(code, f"The state folder {path} {cause}; set STATE_DIR to another folder.")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the operating system about `path` into a `StateRootError`."""
    try:
        yield
    except OSError as error:
        raise sentence_for(error, path) from error
