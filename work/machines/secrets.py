"""The secrets of pairing: how they look, and what is kept of them."""

from __future__ import annotations

import hashlib
import secrets

from django.utils.crypto import salted_hmac

CODE_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
"""Without I, L, O, U, 0 and 1, which people mistake for others."""

CODE_CHARACTERS = 8
SECRET_BYTES = 32
TOKEN_PREFIX = "smct_"  # noqa: S105 - how it begins


def new_code() -> str:
    """A code as it is shown: two groups of four."""
    code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARACTERS))
    return f"{code[:4]}-{code[4:]}"


def plain_code(typed: str) -> str:
    """What a person typed, without separators and in one case."""
    return "".join(character for character in typed.upper() if character.isalnum())


def code_digest(code: str) -> bytes:
    """A code is short enough to be guessed from a plain digest, so the installation's key goes in."""
    return salted_hmac("work.machines.code", plain_code(code), algorithm="sha256").digest()


def new_secret() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def secret_digest(secret: str) -> bytes:
    """A secret of 32 random bytes needs no key."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
