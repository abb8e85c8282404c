"""Webhooks over HTTP."""

from __future__ import annotations

from base.api.errors import register_statuses
from openagents_site.webhooks.errors import STATUSES

register_statuses(STATUSES)
