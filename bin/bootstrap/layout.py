"""Where things are in a checkout."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
VENV = CHECKOUT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed.json"  # written last: what this environment holds
UNFINISHED = VENV / "unfinished"  # there from before the first file until the last one
CACHE = CHECKOUT / ".cache"
LOG = CACHE / "bootstrap.log"
