"""Two clients: the vendor's own SDK, and bare HTTP for what an SDK cannot send."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import requests
from ascii_box_sdk import ApiClient, Configuration
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.box_helpers import wait_until_ready
from ascii_box_sdk.models.box import Box
from ascii_box_sdk.models.command_request import CommandRequest
from ascii_box_sdk.models.create_box_request import CreateBoxRequest

from tests.localbox.server import LocalboxServer
from tests.waiting import eventually

WAIT_SECONDS = 60

T = TypeVar("T")


def sdk(server: LocalboxServer, *, key: str | None = None) -> BoxApi:
    return BoxApi(ApiClient(Configuration(host=server.base_url, access_token=key or server.key)))


def new_key() -> str:
    return secrets.token_hex(12)


def ready_box(api: BoxApi, **fields: Any) -> Box:
    """A new box that is up."""
    made = api.create(new_key(), create_box_request=CreateBoxRequest(**({"ttl_seconds": 900} | fields)))
    return wait_ready(api, made.box.id)


def wait_ready(api: BoxApi, box_id: str) -> Box:
    return wait_until_ready(api, box_id, timeout_seconds=WAIT_SECONDS, poll_interval_seconds=0.02)


def run(api: BoxApi, box_id: str, command: str, **fields: Any) -> Any:
    """The answer to a command, unwrapped from the SDK's union."""
    return api.command(box_id, CommandRequest(command=command, **fields)).actual_instance


def wait_until(look: Callable[[], T], *, wanted: Callable[[T], object] = bool) -> T:
    """Look until what is seen is wanted; returns it."""
    return eventually(lambda: [seen] if wanted(seen := look()) else [])[0]


def wait_state(api: BoxApi, box_id: str, state: str) -> Box:
    return wait_until(lambda: api.get(box_id).box, wanted=lambda box: box.state == state)


class Http:
    """Requests with the key, relative to a dialect's base URL."""

    def __init__(self, server: LocalboxServer, *, prefix: str = "/api/box/v1") -> None:
        self.base_url = server.origin + prefix
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {server.key}"

    def __call__(self, method: str, path: str, **arguments: Any) -> requests.Response:
        return self.session.request(method, self.base_url + path, timeout=WAIT_SECONDS, **arguments)
