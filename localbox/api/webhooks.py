"""Webhooks of the account."""

from __future__ import annotations

import time
from typing import Any

from .. import bodies, views
from ..bodies import Omitted
from ..errors import not_found
from ..ids import WEBHOOK_ID
from ..store import webhooks
from ..store.webhooks import Webhook
from .calls import Answer
from .handlers import Call, Endpoint


async def list_webhooks(call: Call) -> Answer:
    known = webhooks.every(call.provider.database.reader)
    return Answer(200, "webhook.list", {"webhooks": [views.webhook(hook, call.dialect) for hook in known]})


async def create(call: Call) -> Answer:
    body = bodies.new_webhook(
        await call.body(), call.dialect, loopback=call.provider.settings.loopback_webhooks
    )
    columns = _columns(body)
    hook = await call.provider.database.write(
        lambda rows: webhooks.insert(
            rows,
            name=columns.get("name"),
            url=columns["url"],
            events=columns["events"],
            dialect=call.dialect.name,
            now=time.time(),
        )
    )
    return Answer(201, "webhook.created", _with_secret(call, hook))


async def read(call: Call) -> Answer:
    hook = webhooks.get(call.provider.database.reader, _webhook_id(call))
    return Answer(200, "webhook.info", _shown(call, hook))


async def change(call: Call) -> Answer:
    loopback = call.provider.settings.loopback_webhooks
    columns = _columns(bodies.changed_webhook(await call.body(), call.dialect, loopback=loopback))
    webhook_id = _webhook_id(call)
    hook = await call.provider.database.write(
        lambda rows: webhooks.change(rows, webhook_id, time.time(), **columns)
    )
    return Answer(200, "webhook.updated", _shown(call, hook))


async def rotate(call: Call) -> Answer:
    webhook_id = _webhook_id(call)
    hook = await call.provider.database.write(lambda rows: webhooks.rotate(rows, webhook_id, time.time()))
    if hook is None:
        raise not_found("webhook")
    return Answer(200, "webhook.rotated", _with_secret(call, hook))


async def delete(call: Call) -> Answer:
    webhook_id = _webhook_id(call)
    if not await call.provider.database.write(lambda rows: webhooks.delete(rows, webhook_id)):
        raise not_found("webhook")
    return Answer(200, "webhook.deleted", {"id": webhook_id})


def _webhook_id(call: Call) -> str:
    webhook_id = str(call.request.path_params["webhook_id"])
    if not WEBHOOK_ID.fullmatch(webhook_id):
        raise not_found("webhook")
    return webhook_id


def _shown(call: Call, hook: Webhook | None) -> dict[str, Any]:
    if hook is None:
        raise not_found("webhook")
    return {"webhook": views.webhook(hook, call.dialect)}


def _with_secret(call: Call, hook: Webhook) -> dict[str, Any]:
    return {"webhook": views.webhook(hook, call.dialect), "secret": hook.secret}


def _columns(body: bodies.WebhookBody) -> dict[str, Any]:
    sent = {"name": body.name, "url": body.url, "events": body.events}
    return {name: value for name, value in sent.items() if not isinstance(value, Omitted)}


ENDPOINTS = (
    Endpoint("GET", "/webhooks", list_webhooks),
    Endpoint("POST", "/webhooks", create),
    Endpoint("GET", "/webhooks/{webhook_id}", read),
    Endpoint("PATCH", "/webhooks/{webhook_id}", change),
    Endpoint("DELETE", "/webhooks/{webhook_id}", delete),
    Endpoint("POST", "/webhooks/{webhook_id}/rotate", rotate),
)
