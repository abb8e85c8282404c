"""The fake provider's API: both dialects, one set of handlers, the bodies of the real thing."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.commands import Commands
from tests.fakes.wire import Request
from tests.fakes.world import TAKES_COMMANDS, FakeBox, Refusal, World, stamp


@dataclass(frozen=True)
class Dialect:
    """The words of one version of the API."""

    name: str
    prefix: str
    collection: str
    noun: str

    def translated(self, document: Any) -> Any:
        """A document that was written in the words of `box`."""
        if self.name == "box" or not isinstance(document, dict):
            return document
        renamed = {"box": "sandbox", "boxes": "sandboxes", "boxId": "sandboxId", "boxType": "sandboxType"}
        out = {renamed.get(name, name): value for name, value in document.items()}
        if isinstance(out.get("type"), str):
            out["type"] = out["type"].replace("box.", "sandbox.", 1)
        if isinstance(out.get("code"), str):
            out["code"] = re.sub("^box_", "sandbox_", out["code"])
            out["error"] = {**out["error"], "code": out["code"]}
        return out


BOX = Dialect("box", "/api/box/v1", "boxes", "box")
BOAT = Dialect("boat", "/api/v1", "sandboxes", "sandbox")
DIALECTS = (BOX, BOAT)

ROUTES = (
    ("list", "GET", "/boxes"),
    ("create", "POST", "/boxes"),
    ("get", "GET", "/boxes/{id}"),
    ("patch", "PATCH", "/boxes/{id}"),
    ("delete", "DELETE", "/boxes/{id}"),
    ("stop", "POST", "/boxes/{id}/stop"),
    ("resume", "POST", "/boxes/{id}/resume"),
    ("command", "POST", "/boxes/{id}/commands"),
    ("command_status", "GET", "/boxes/{id}/commands/{process}"),
    ("usage", "GET", "/boxes/{id}/usage"),
    ("limits", "GET", "/limits"),
    ("me", "GET", "/me"),
)
"""Name, verb and path of everything that is served, in the words of `box`."""

NAMES = tuple(name for name, _, _ in ROUTES)
_BY_TEXT = {f"{verb} {path}": name for name, verb, path in ROUTES}


@dataclass(frozen=True)
class Match:
    """A request and the route that serves it."""

    name: str
    dialect: Dialect
    box_id: str | None = None
    process: str | None = None


def route_name(text: str) -> str:
    """The name of a route that is written as a name or as `POST /boxes/{id}/stop`; `*` is every route."""
    name = _BY_TEXT.get(text, text)
    if name != "*" and name not in NAMES:
        raise ValueError(f"the fake provider has no route {text!r}; it has {', '.join(_BY_TEXT)}")
    return name


def match(request: Request) -> Match | None:
    """The route of a request; None if it is not served."""
    for dialect in DIALECTS:
        if request.path.startswith(dialect.prefix + "/"):
            path = request.path.removeprefix(dialect.prefix)
            path = re.sub(rf"^/{dialect.collection}(?=/|$)", "/boxes", path) if dialect is not BOX else path
            return _matched(dialect, request.method, path)
    return None


def _matched(dialect: Dialect, method: str, path: str) -> Match | None:
    for name, verb, pattern in ROUTES:
        regex = pattern.replace("{id}", "(?P<id>[^/]+)").replace("{process}", "(?P<process>[^/]+)")
        if verb == method and (found := re.fullmatch(regex, path)):
            parts = found.groupdict()
            return Match(name, dialect, parts.get("id"), parts.get("process"))
    return None


Answer = tuple[int, dict[str, Any]]


class Api:
    """Answers requests from the world."""

    def __init__(self, world: World, commands: Commands) -> None:
        self.world = world
        self.commands = commands
        self._handlers: Mapping[str, Callable[[Match, Request], Answer]] = {
            name: getattr(self, f"_{name}") for name in NAMES
        }

    def answer(self, matched: Match, request: Request) -> Answer:
        """Status and JSON, in the words of the request's dialect."""
        try:
            status, document = self._handlers[matched.name](matched, request)
        except Refusal as refusal:
            status, document = refusal.status, error_body(refusal.status, refusal.code, refusal.message)
        return status, matched.dialect.translated(document)

    def _list(self, _matched: Match, request: Request) -> Answer:
        limit = int(request.query.get("limit", "100"))
        if not 1 <= limit <= 200:
            raise Refusal(400, "invalid_limit")
        wanted = set(request.query["state"].split(",")) if request.query.get("state") else None
        ascending = request.query.get("sort") == "asc"
        boxes = [box for box in self.world.existing() if wanted is None or box.state in wanted]
        after = _cursor_position(request.query.get("cursor"))
        if not ascending:
            boxes.reverse()
        if after is not None:
            boxes = [box for box in boxes if (box.sequence > after if ascending else box.sequence < after)]
        page, more = boxes[:limit], len(boxes) > limit
        number = page_number(request) + 1
        info = {
            "nextCursor": _cursor(number, page[-1].sequence) if more else None,
            "hasMore": more,
            "limit": limit,
        }
        shown = [box.document() for box in page]
        return 200, {"ok": True, "type": "box.list", "boxes": shown, "pageInfo": info}

    def _create(self, _matched: Match, request: Request) -> Answer:
        body = request.json or {}
        box = self.world.create(body, request.headers.get("idempotency-key"))
        return 202, {
            "ok": True,
            "type": "box.created",
            "status": "provisioning",
            "ttlSeconds": box.ttl_seconds,
            "box": box.document(),
        }

    def _get(self, matched: Match, _request: Request) -> Answer:
        return 200, _shown("box.info", self._box(matched))

    def _patch(self, matched: Match, request: Request) -> Answer:
        box, body = self._box(matched), request.json or {}
        if not body.keys() & {"name", "ttlSeconds"}:
            raise Refusal(400, "no_changes")
        if "name" in body:
            box.name = body["name"][:120]
        if "ttlSeconds" in body:
            self.world.set_ttl(box, body["ttlSeconds"])
        return 200, _shown("box.info", box)

    def _delete(self, matched: Match, request: Request) -> Answer:
        box = self._box(matched)
        if request.headers.get("x-ascii-confirm-delete") != box.id:
            raise Refusal(409, "delete_confirmation_required")
        self.commands.end(box)
        self.world.delete(box)
        now = stamp(self.world.clock.now())
        operation = {
            "id": f"bdop_{box.sequence:032x}",
            "kind": "box",
            "targetId": box.id,
            "reason": "explicit",
            "status": "completed",
            "attemptCount": 1,
            "requestedAt": now,
            "completedAt": now,
        }
        return 202, {"ok": True, "type": "box.deleting", "operation": operation}

    def _stop(self, matched: Match, _request: Request) -> Answer:
        box = self._box(matched)
        self.world.stop(box)
        self.commands.end(box)
        return 202, {**_shown("box.stopping", box), "id": box.id, "status": "archiving"}

    def _resume(self, matched: Match, _request: Request) -> Answer:
        box = self._box(matched)
        box.state = "ready"
        self.world.set_ttl(box, box.ttl_seconds)
        return 202, {**_shown("box.resuming", box), "id": box.id, "status": "resuming"}

    def _command(self, matched: Match, request: Request) -> Answer:
        body = request.json or {}
        if not 1 <= int(body.get("timeoutSeconds", 30)) <= 600:
            raise Refusal(400, "invalid_timeout")
        box = self._box(matched)
        if box.state in {"archiving", "archived", "error"}:
            raise Refusal(409, "machine_not_running")
        if box.state not in TAKES_COMMANDS:
            raise Refusal(409, "box_starting")
        return 200, self.commands.run(box, body)

    def _command_status(self, matched: Match, request: Request) -> Answer:
        box = self._box(matched)
        tail = int(request.query.get("tailBytes", "524288"))
        return 200, self.commands.status(box, matched.process or "", tail)

    def _usage(self, matched: Match, _request: Request) -> Answer:
        box = self._box(matched)
        return 200, {
            "ok": True,
            "type": "box.usage",
            "boxId": box.id,
            "boxType": box.type,
            "billingMultiplier": 1,
            "since": stamp(box.created_at),
            "until": stamp(self.world.clock.now()),
            "seconds": box.billed_seconds,
            "dollars": box.cost_microusd / 1_000_000,
            "secondsPerDollar": 100_000,
            "running": box.is_billing,
        }

    def _limits(self, _matched: Match, _request: Request) -> Answer:
        active = sum(box.is_billing for box in self.world.existing())
        return 200, {
            "ok": True,
            "type": "limits.info",
            "canStart": True,
            "activeBoxes": active,
            "maxActiveBoxes": 100_000,
            "billingStatus": "active",
        }

    def _me(self, _matched: Match, _request: Request) -> Answer:
        return 200, {"ok": True, "type": "user.info", "user": {"login": "fake"}}

    def _box(self, matched: Match) -> FakeBox:
        return self.world.find(matched.box_id or "")


def error_body(status: int, code: str, message: str = "") -> dict[str, Any]:
    """The complete error body of the API."""
    message = message or code.replace("_", " ")
    return {
        "ok": False,
        "type": "box.error",
        "status": status,
        "code": code,
        "message": message,
        "requestId": "req_fake",
        "error": {"code": code, "message": message, "status": status},
    }


def page_number(request: Request) -> int:
    """Which page of a listing is asked for, from 1."""
    number = _decoded(request.query.get("cursor"))
    return number[0] if number else 1


def _shown(kind: str, box: FakeBox) -> dict[str, Any]:
    return {"ok": True, "type": kind, "box": box.document()}


def _cursor(page: int, sequence: int) -> str:
    return base64.urlsafe_b64encode(f"{page}:{sequence}".encode()).decode().rstrip("=")


def _cursor_position(cursor: str | None) -> int | None:
    if not cursor:
        return None
    decoded = _decoded(cursor)
    if decoded is None:
        raise Refusal(410, "cursor_expired")
    return decoded[1]


def _decoded(cursor: str | None) -> tuple[int, int] | None:
    try:
        text = base64.urlsafe_b64decode((cursor or "") + "==").decode()
        page, _, sequence = text.partition(":")
        return int(page), int(sequence)
    except (ValueError, UnicodeDecodeError):
        return None
