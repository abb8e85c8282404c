"""Sealing small secrets for the database: who reads a table or a backup without the SECRET_KEY learns nothing.

AES-256-GCM; each purpose has a key of its own, derived from SECRET_KEY. What was sealed under a key in
SECRET_KEY_FALLBACKS can still be opened.
"""

from __future__ import annotations

import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

NONCE_BYTES = 12


class SealBroken(Exception):
    """The bytes were not sealed for this purpose with a key that is still known, or they were changed."""


def seal(purpose: str, secret: bytes) -> bytes:
    """The secret as bytes that can be stored; different bytes every time."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + _cipher(settings.SECRET_KEY, purpose).encrypt(nonce, secret, purpose.encode())


def unseal(purpose: str, sealed: bytes) -> bytes:
    """The secret again. Raises SealBroken."""
    nonce, rest = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            return _cipher(key, purpose).decrypt(nonce, rest, purpose.encode())
        except (InvalidTag, ValueError):
            continue
    raise SealBroken


@lru_cache(maxsize=32)
def _cipher(key: str, purpose: str) -> AESGCM:
    derived = HKDF(SHA256(), length=32, salt=None, info=b"openagents-boxes:" + purpose.encode()).derive(
        key.encode()
    )
    return AESGCM(derived)
