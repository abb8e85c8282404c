"""What the staff pages do not show: tables of django-allauth that stay empty, whose pages would promise what does not work."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin


def hide_unused_tables() -> None:
    """Take their pages off the staff site. Identities are users, and the OAuth app is in the settings."""
    for model in (EmailAddress, SocialAccount, SocialApp, SocialToken):
        if admin.site.is_registered(model):
            admin.site.unregister(model)
