"""Every refusal of the API: an HTTP status, a stable code, a sentence."""

from __future__ import annotations


class ApiError(Exception):
    """An answer other than success. `retry_after` is whole seconds; `details` must hold no secret."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after: int | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.details = details


def bad_request(code: str, message: str) -> ApiError:
    return ApiError(400, code, message)


def not_found(what: str) -> ApiError:
    return ApiError(404, "not_found", f"There is no such {what}.")


def conflict(code: str, message: str, *, retry_after: int | None = None) -> ApiError:
    return ApiError(409, code, message, retry_after=retry_after)


def not_supported(method: str, path: str) -> ApiError:
    return ApiError(404, "not_supported", f"This provider does not serve {method} {path}.")
