"""The shape of errors, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class ErrorDetail(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable, for programs.")
    detail = serializers.CharField(help_text="For people.")


class ErrorAnswer(serializers.Serializer[Any]):
    """Every error answer; `error.fields` says which fields of a body were not valid."""

    error = ErrorDetail()
