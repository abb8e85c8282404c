"""The connector: a program on a paired computer that runs delegations with the coding agents there."""

from __future__ import annotations

VERSION = "0.1.0"
