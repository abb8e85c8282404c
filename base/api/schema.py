"""How the OpenAPI description tells of errors: their shape, and which codes a call may answer with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rest_framework import serializers

from base.api import errors
from base.errors import CodedError

CODES = "x-error-codes"
"""The key of an operation that lists every code it may answer with."""
TOO_MANY_REQUESTS = 429
RETRY_AFTER = {"description": "Seconds until the next is taken.", "schema": {"type": "integer", "minimum": 1}}


class ErrorDetail(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable, for programs.")
    detail = serializers.CharField(help_text="For people.")
    fields = serializers.DictField(  # type: ignore[assignment]  # a field of the answer
        required=False, help_text="Which fields of the request were not valid, and why."
    )


class ErrorAnswer(serializers.Serializer[Any]):
    """Every error answer; `error.fields` says which fields of a request were not valid."""

    error = ErrorDetail()


def refusals(*codes: str) -> dict[str, Any]:
    """For `extend_schema(extensions=...)`: the codes that this call may answer with, beside those of every call."""
    return {CODES: [str(code) for code in codes]}


def shown_codes(codes: Iterable[str]) -> list[str]:
    """These codes as the API shows them, each once. Raises ValueError for one that no app has registered."""
    unknown = sorted(code for code in codes if not errors.is_registered(code))
    if unknown:
        raise ValueError(f"no HTTP status is registered for {', '.join(unknown)}")
    return sorted({errors.public_code(code) for code in codes})


def described_errors(codes: Iterable[str], answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """OpenAPI responses by status for these public codes; `answer` is the schema of their body."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(errors.status_of(code), []).append(code)
    return {str(status): _response(status, by_status[status], answer) for status in sorted(by_status)}


def _response(status: int, codes: list[str], answer: dict[str, Any]) -> dict[str, Any]:
    examples = {code: {"value": errors.body(code, detail_of(code))} for code in codes}
    headers = {"headers": {"Retry-After": RETRY_AFTER}} if status == TOO_MANY_REQUESTS else {}
    return {
        "description": "\n".join(f"- `{code}`: {detail_of(code)}" for code in codes),
        **headers,
        "content": {"application/json": {"schema": answer, "examples": examples}},
    }


def detail_of(code: str) -> str:
    """The sentence that goes with a code where its error says nothing more exact."""
    if known := errors.registered_detail(code):
        return known
    return next((_sentence(kind) for kind in _kinds(CodedError) if kind.code == code), "the request failed")


def _sentence(kind: type[CodedError]) -> str:
    return (kind.__doc__ or kind.code).strip().splitlines()[0]


def _kinds(of: type[CodedError]) -> Iterator[type[CodedError]]:
    for kind in of.__subclasses__():
        yield kind
        yield from _kinds(kind)
