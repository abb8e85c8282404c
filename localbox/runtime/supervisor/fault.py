"""A refusal with a code, as it travels from a supervisor to the provider."""

from __future__ import annotations


class Fault(Exception):
    """`code` is one of the provider's error codes, `message` a sentence for the caller."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
