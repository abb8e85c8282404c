"""Settings of conversations, read at call time from `settings.CONVERSATIONS`."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from base.conf import resolve, setting


@dataclass(frozen=True)
class ConversationSettings:
    greeting: str = setting("", "CONVERSATION_GREETING", "First message of a new conversation. Empty: none.")


def conversation_settings() -> ConversationSettings:
    return resolve(ConversationSettings, settings.CONVERSATIONS)
