"""How a handler becomes a route: it is given a Call and returns an Answer, or a Response of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..dialects import Dialect
from ..errors import conflict
from ..lifecycle import existing
from ..provider import Provider
from ..runtime.interface import BoxHandle
from ..states import READY, STARTING
from ..store.boxes import BoxRow
from .calls import SMALL_BODY_BYTES, Answer, json_body, success


@dataclass(frozen=True)
class Call:
    """A request with its dialect and the provider it is for."""

    request: Request
    dialect: Dialect
    provider: Provider

    @property
    def box_id(self) -> str:
        return str(self.request.path_params["box_id"])

    async def body(self, *, maximum: int = SMALL_BODY_BYTES) -> dict[str, Any]:
        return await json_body(self.request, maximum=maximum)

    def box(self) -> BoxRow:
        """The box of the path. Raises ApiError 404."""
        return existing(self.provider.database, self.box_id)

    def handle(self) -> BoxHandle:
        """The box of the path, if it is up. Raises ApiError 404, or 409: `box_starting` before, else
        `machine_not_running`."""
        row = self.box()
        if row.state in STARTING:
            raise conflict("box_starting", "The box is still starting.", retry_after=1)
        if row.state != READY:
            raise conflict("machine_not_running", f"The box is {row.state}.")
        handle = self.provider.conductor.handles.get(row.id)
        if handle is None:
            raise conflict("box_restoring", "The box is being looked for.", retry_after=1)
        return handle


Handler = Callable[[Call], Awaitable[Answer | Response]]


@dataclass(frozen=True)
class Endpoint:
    """A served call; `{boxes}` in the path is the dialect's word for them."""

    method: str
    path: str
    handler: Handler


def route(endpoint: Endpoint, dialect: Dialect, provider: Provider) -> Route:
    async def run(request: Request) -> Response:
        answer = await endpoint.handler(Call(request, dialect, provider))
        return answer if isinstance(answer, Response) else success(answer, dialect)

    path = dialect.prefix + endpoint.path.replace("{boxes}", dialect.collection)
    return Route(path, run, methods=[endpoint.method])
