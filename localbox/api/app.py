"""The ASGI application: every endpoint once in each dialect, `/healthz`, and `not_supported` for the rest."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ..dialects import DIALECTS
from ..errors import not_supported
from ..provider import Provider
from . import account, boxes, commands, files, webhooks
from .calls import JsonResponse
from .edge import HEALTH_PATH, Edge
from .handlers import route

ENDPOINTS = (
    *boxes.ENDPOINTS,
    *commands.ENDPOINTS,
    *files.ENDPOINTS,
    *account.ENDPOINTS,
    *webhooks.ENDPOINTS,
)


def application(provider: Provider, *, key: str) -> ASGIApp:
    async def health(request: Request) -> Response:
        return JsonResponse({"ok": True, "runtime": provider.runtime.name})

    served = [route(endpoint, dialect, provider) for dialect in DIALECTS.values() for endpoint in ENDPOINTS]
    routes = [Route(HEALTH_PATH, health), *served]
    router = Router(routes, redirect_slashes=False, default=_not_served)
    return Edge(router, key=key, latency_ms=provider.settings.latency_ms)


async def _not_served(scope: Scope, receive: Receive, send: Send) -> None:
    raise not_supported(scope.get("method", ""), scope["path"][:200])
