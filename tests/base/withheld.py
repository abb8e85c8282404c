"""Secrets, and a policy that knows some, for tests of what is withheld."""

from __future__ import annotations

from base.redaction import Policy

LONG = "a1B2" * 12
KEY = f"-----BEGIN RSA PRIVATE KEY-----\nMII{LONG}\n{LONG}=\n-----END RSA PRIVATE KEY-----"

POLICY = Policy(
    ("known secret", "secret listed", "tail\\"), lambda word: word in {"w" * 43, "w" * 42, "x" * 90 + "abc"}
)
