"""Every address below `/api/v1/`."""

from __future__ import annotations

from django.urls import path, re_path
from django.views.decorators.csrf import csrf_exempt

from accounts.api import TokenDetail, Tokens
from base.api.errors import not_found
from boxes.urls import urlpatterns as box_addresses
from conversations.api import ConversationDetail, Conversations, Messages
from forge.urls import urlpatterns as forge_addresses
from openagents_site.api.fleet import FleetView
from openagents_site.api.history import History
from openagents_site.api.index import index
from openagents_site.api.me import Me
from openagents_site.webhooks.api.urls import urlpatterns as webhook_addresses
from runs.urls import urlpatterns as run_addresses
from work.api.urls import urlpatterns as job_addresses
from work.machines.urls import urlpatterns as machine_addresses

urlpatterns = [
    path("", csrf_exempt(index), name="index"),
    path("me", Me.as_view()),
    path("tokens", Tokens.as_view()),
    path("tokens/<id:token_id>", TokenDetail.as_view()),
    path("conversations", Conversations.as_view()),
    path("conversations/<id:conversation_id>", ConversationDetail.as_view()),
    path("conversations/<id:conversation_id>/messages", Messages.as_view()),
    *box_addresses,
    *run_addresses,
    *forge_addresses,
    *job_addresses,
    *machine_addresses,
    *webhook_addresses,
    path("fleet", FleetView.as_view()),
    path("history", History.as_view()),
    re_path(r"", not_found, name="missing"),
]
