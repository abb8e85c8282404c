"""What a sandbox could not do, as the API says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ApiError, bad_request, not_found
from ..runtime.interface import RuntimeFault

_AT_FAULT_THE_REQUEST = ("invalid_command", "invalid_cwd", "invalid_path", "file_too_large")


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn a RuntimeFault inside into the ApiError for it; `what` was being looked for."""
    try:
        yield
    except RuntimeFault as fault:
        if fault.code == "not_found":
            raise not_found(what) from None
        if fault.code in _AT_FAULT_THE_REQUEST:
            raise bad_request(fault.code, fault.message) from None
        raise ApiError(502, "box_direct_failed", fault.message) from None
