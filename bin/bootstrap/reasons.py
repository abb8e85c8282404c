"""What can keep a checkout from being made runnable, each in one sentence."""

from __future__ import annotations

import errno
import getpass
import os
import re
import sys

from layout import CHECKOUT, LOG

CAUSES = (
    (
        r"No space left on device|Errno 28|Disk quota exceeded",
        "the disk is full: free some space and run this again",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "a downloaded package is not the one that the requirements pin: remove .cache and run this again; if it"
        " stays so, do not trust the package index in use",
    ),
    (
        r"NewConnectionError|NameResolutionError|Temporary failure in name resolution|Name or service not known"
        r"|Connection refused|Network is unreachable|ConnectTimeoutError|Read timed out|ProxyError|Connection broken",
        "the package index cannot be reached: connect this machine to the network (or name a reachable index in"
        " PIP_INDEX_URL) and run this again",
    ),
    (
        r"SSLError|CERTIFICATE_VERIFY_FAILED",
        "the package index's TLS certificate is not trusted: name your CA file in PIP_CERT",
    ),
    (
        r"Permission denied|Read-only file system",
        f"{CHECKOUT} cannot be written to: give yourself write access to it",
    ),
)


class Unready(Exception):
    """Why the checkout cannot be made runnable, as one sentence. `halfway`: the environment may have been changed."""

    def __init__(self, sentence: str, *, halfway: bool = False) -> None:
        super().__init__(sentence)
        self.halfway = halfway


def sentence_for(error: OSError) -> str:
    """One sentence for what the operating system refused."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return CAUSES[0][1]
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return (
            f"{CHECKOUT} cannot be written to by {_user()}: give that user write access to it, or clone to a folder"
            " of your own"
        )
    return f"{error.filename or CHECKOUT}: {error.strerror or error}"


def cause_of(output: str, otherwise: str) -> str:
    """What went wrong, from a program's output, in one sentence."""
    for pattern, sentence in CAUSES:
        if re.search(pattern, output):
            return sentence
    absent = re.findall(r"No matching distribution found for (\S+)", output)
    if absent:
        return f"the package index in use has no {absent[-1]} for Python {sys.version_info[0]}.{sys.version_info[1]} on this machine"
    errors = [line for line in output.splitlines() if "error" in line.lower()] or output.strip().splitlines()[
        -1:
    ]
    return (
        f"{otherwise} ({errors[-1].strip()[:200] if errors else 'it said nothing'}); all it said is in {LOG}"
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
