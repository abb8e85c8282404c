"""Bodies and answers of the account's API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework import serializers

from accounts.models import ApiToken, User
from accounts.scopes import Scope
from base.api.serializers import StrictSerializer

LONGEST_LIFE_DAYS = 3650


class UserSerializer(serializers.ModelSerializer[User]):
    github_avatar_url = serializers.CharField(read_only=True, help_text="An address; empty if there is none.")

    class Meta:
        model = User
        fields = ("id", "username", "slug", "github_login", "github_avatar_url", "is_staff")
        read_only_fields = fields


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    created_at = serializers.DateTimeField(source="created", read_only=True)
    expires_at = serializers.DateTimeField(source="expiry", read_only=True, allow_null=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.choices), read_only=True)

    class Meta:
        model = ApiToken
        fields = ("id", "name", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
        read_only_fields = fields


class CreatedTokenSerializer(TokenSerializer):
    token = serializers.CharField(read_only=True, help_text="The plaintext; it is shown in this answer only.")

    class Meta:
        model = ApiToken
        fields = (*TokenSerializer.Meta.fields, "token")
        read_only_fields = fields


class CreateTokenSerializer(StrictSerializer):
    name = serializers.CharField(max_length=80, required=False, default="", allow_blank=True)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices),
        required=False,
        default=lambda: [Scope.READ.value],
    )
    expires_in_days = serializers.IntegerField(
        min_value=1, max_value=LONGEST_LIFE_DAYS, required=False, allow_null=True, default=None
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        days = attrs.pop("expires_in_days")
        return attrs | {"expires_in": None if days is None else timedelta(days=days)}
