"""Bodies that say exactly what they take."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses a field that it does not know: a misspelt option must not be silently ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(map(str, data)) - set(self.fields))
            if unknown:
                raise serializers.ValidationError({name: ["there is no such field"] for name in unknown})
        return super().to_internal_value(data)
