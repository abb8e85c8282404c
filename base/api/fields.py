"""Fields of bodies whose values are judged by a service, with codes of its own, and told by the description all the same."""

from __future__ import annotations

from typing import Any

from django.db import models
from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.plumbing import build_choice_field
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


class OneOfField(serializers.CharField):
    """Text that is one of `choices`."""

    def __init__(self, choices: type[models.TextChoices], **options: Any) -> None:
        super().__init__(**options)
        self.choices = choices.choices


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentTextField(serializers.CharField):
    """Text that is a time with a zone."""


class OneOfDescription(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = OneOfField

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        told: dict[str, Any] = build_choice_field(serializers.ChoiceField(choices=self.target.choices))
        return told
