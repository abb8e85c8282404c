"""What goes wrong when a model is asked. An answer has no effect before it is written down, so asking again is always
safe; the kinds say whether it can help."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from base.errors import CodedError


class Trouble(StrEnum):
    REFUSED = "refused"  # the same request will be refused again
    RETRY_LATER = "retry_later"  # it was not answered; after a while it may be
    UNKNOWN = "unknown"  # it may have been answered (and paid); the answer did not arrive whole


class ModelError(CodedError):
    """The model did not answer."""

    code = "provider_failure"

    def __init__(
        self,
        kind: Trouble,
        code: str,
        *,
        retry_after_seconds: float | None = None,
        detail: str | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        """`usage`: what the server says that the broken answer used, if it does."""
        self.kind, self.retry_after_seconds = kind, retry_after_seconds
        self.usage: Mapping[str, Any] = usage or {}
        super().__init__(code, detail)
