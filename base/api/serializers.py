"""Bodies that say exactly what they take."""

from __future__ import annotations

from typing import Any

from rest_framework import fields, serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses a field that it does not know: a misspelt option must not be silently ignored. Refuses a value of another JSON type, too:
    the number 1 is no text, and the text "true" is no truth."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            problems = {
                name: ["there is no such field"] for name in sorted(set(map(str, data)) - set(self.fields))
            }
            known = {name: field for name, field in self.fields.items() if name in data}
            problems |= {
                name: [told] for name, field in known.items() if (told := _mistyped(field, data[name]))
            }
            if problems:
                raise serializers.ValidationError(problems)
        return super().to_internal_value(data)


def _mistyped(field: fields.Field[Any, Any, Any, Any], value: Any) -> str | None:
    """What is to be said of a value whose type in JSON is not the field's."""
    if value is None:  # whether it may be is the field's own question
        return None
    if isinstance(field, fields.BooleanField):
        return None if isinstance(value, bool) else "must be true or false"
    if isinstance(field, fields.IntegerField):
        return None if _is_whole(value) else "must be a whole number"
    if isinstance(field, fields.CharField | fields.UUIDField | fields.ChoiceField):
        return None if isinstance(value, str) else "must be text"
    if isinstance(field, fields.ListField) and isinstance(value, list):
        child: Any = field.child
        return next((f"each {told}" for item in value if (told := _mistyped(child, item))), None)
    return None


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    )
