"""What is sent to a box: POSIX shell texts, each one provider command, built from plain values.

A run lives in one directory of its own on the box. The scripts say what happened in lines `OA_NAME=value` on standard
output (`runs.replies` reads them); `docs/reference/runs-on-the-box.md` lists the files and the lines.
"""

from __future__ import annotations

from .dispatch import GitCredential, dispatch_script
from .kill import kill_script
from .poll import poll_script
from .probe import probe_script

__all__ = ["GitCredential", "dispatch_script", "kill_script", "poll_script", "probe_script"]
