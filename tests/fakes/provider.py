"""A box provider over real HTTP that keeps its boxes in memory and goes wrong exactly when a test says so.

    with FakeProvider() as fake:
        fake.add_box("bx_8bhkse3n", name="ours", age=3600)
        fake.next("POST /boxes", drop_after=True)      # make the box, lose the answer
        ...
        assert fake.count("create") == 2               # requests that came
        assert len(fake.billing()) == 1                # boxes that cost money

It serves both dialects at once, under the paths of each. What exists is in `fake.boxes`; what a call can meet is told by
`Fault`; time is `fake.clock`. Nothing here waits by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import format_datetime
from typing import Any

from tests.fakes.answers import deliver, rendered
from tests.fakes.commands import Commands, FakeProcess, Responder
from tests.fakes.faults import Fault, Hold, Script
from tests.fakes.routes import DIALECTS, Api, Match, error_body, match, page_number, route_name
from tests.fakes.wire import Connection, Request, WireServer
from tests.fakes.world import Clock, FakeBox, World


@dataclass
class Call:
    """One request that came. `status` is what was answered, None if nothing was."""

    name: str
    request: Request
    box_id: str | None = None
    status: int | None = None
    fault: Fault | None = None

    @property
    def json(self) -> Any:
        return self.request.json

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def headers(self) -> Mapping[str, str]:
        return self.request.headers


@dataclass
class _Latency:
    """Seconds that a call takes before it acts, by route name and for every other route."""

    by_name: dict[str, float] = field(default_factory=dict)
    default: float = 0.0


class FakeProvider:
    """The provider, served while the context is open."""

    def __init__(self, *, dialect: str = "box", key: str = "fake-provider-key") -> None:
        self.dialect = next(known for known in DIALECTS if known.name == dialect)
        self.key = key
        self.clock = Clock()
        self.world = World(self.clock)
        self.commands = Commands()
        self._api = Api(self.world, self.commands)
        self._script = Script()
        self._latency = _Latency()
        self._server = WireServer(self._serve)
        self._calls: list[Call] = []
        self._called = threading.Condition()

    # -- its life

    def __enter__(self) -> FakeProvider:
        self._server.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.stop()
        self.commands.close()

    @property
    def url(self) -> str:
        """Base URL in the dialect that was chosen."""
        return self._server.url + self.dialect.prefix

    @property
    def settings(self) -> dict[str, Any]:
        """What `settings.BOX_API` needs so that the product talks to this provider."""
        return {
            "base_url": self.url,
            "api_key": self.key,
            "dialect": self.dialect.name,
            "retry_delay_ms": 0,
            "poll_interval_ms": 0,
        }

    # -- what exists

    @property
    def boxes(self) -> dict[str, FakeBox]:
        """Every box that ever was, by id."""
        return self.world.boxes

    def add_box(self, box_id: str | None = None, **fields: Any) -> FakeBox:
        """Put a box into the world: `state` ("ready"), `name`, `age` in seconds, and any field of FakeBox."""
        return self.world.add(box_id, **fields)

    def add_boxes(self, number: int, **fields: Any) -> list[FakeBox]:
        """The same, many times, with ids of the vendor's form."""
        return [self.world.add(**fields) for _ in range(number)]

    def existing(self) -> list[FakeBox]:
        """Boxes that are not deleted, in order of creation."""
        return self.world.existing()

    def billing(self) -> list[FakeBox]:
        """Boxes that cost money right now."""
        return [box for box in self.existing() if box.is_billing]

    def boxes_of_key(self, idempotency_key: str) -> list[str]:
        """Ids of the boxes that were made with this key; more than one would be a double."""
        return self.world.made_by_key.get(idempotency_key, [])

    # -- what goes wrong

    def next(self, route: str, *, times: int = 1, **what: Any) -> None:
        """Let the next call of a route meet a fault (see `Fault`); several are met one after the other."""
        self._script.add(Fault(route_name(route), times=times, **what))

    def always(self, route: str, **what: Any) -> None:
        """Let every call of a route meet a fault until `heal`."""
        self._script.add(Fault(route_name(route), times=None, **what))

    def hold(self, route: str, *, after: bool = False, **what: Any) -> Hold:
        """Keep the next call of a route waiting before (or after) it acts, until the returned hold is released."""
        hold = Hold()
        self.next(route, **({"hold_after": hold} if after else {"hold": hold}), **what)
        return hold

    def latency(self, seconds: float, route: str | None = None) -> None:
        """Let every call, or every call of one route, take so long."""
        if route is None:
            self._latency.default = seconds
        else:
            self._latency.by_name[route_name(route)] = seconds

    def heal(self) -> None:
        """Forget every fault and latency."""
        self._script.clear()
        self._latency = _Latency()

    def unused_faults(self) -> list[Fault]:
        """Faults that were announced with `next` and were never met."""
        return self._script.unused()

    def drop_connections(self) -> None:
        """Close every open connection, as a restarted server does."""
        self._server.drop_connections()

    # -- commands

    def on_command(self, responder: Responder) -> None:
        """Answer commands with a function of the box and the command; see `Responder`."""
        self.commands.responder = responder

    def execute_commands(self) -> None:
        """Really run commands with bash, each box in a folder of its own. Stopping a box kills what it runs."""
        self.commands.executes = True

    @property
    def processes(self) -> dict[tuple[str, int], FakeProcess]:
        """Detached commands, by box id and process id."""
        return self.commands.processes

    # -- what was asked

    def calls(self, route: str = "*", box_id: str | None = None) -> list[Call]:
        """Every request of a route that came, in order, answered or not; `*` is all of them."""
        name = route_name(route)
        with self._called:
            return [
                call for call in self._calls if name in ("*", call.name) and box_id in (None, call.box_id)
            ]

    def count(self, route: str = "*", box_id: str | None = None) -> int:
        return len(self.calls(route, box_id))

    def forget_calls(self) -> None:
        with self._called:
            self._calls.clear()

    def wait_for_calls(self, route: str, number: int = 1, seconds: float = 30.0) -> list[Call]:
        """The calls of a route once so many came. Raises AssertionError if they do not."""
        return self.wait_until(lambda: len(self.calls(route)) >= number and self.calls(route), seconds)

    def wait_until(self, condition: Callable[[], Any], seconds: float = 30.0) -> Any:
        """What `condition` answers once it is true; it is asked at each call that comes or is answered."""
        with self._called:
            answer = self._called.wait_for(condition, seconds)
        assert answer, "the provider was not asked in time"
        return answer

    # -- serving

    def _serve(self, connection: Connection, request: Request) -> None:
        matched = match(request)
        fault = self._fault(matched, request) if matched is not None else None
        call = self._noted(matched, request, fault)
        status, raw = self._answer(connection, matched, request, fault or Fault("*"))
        if raw is None:
            return
        with self._called:
            call.status = status
            self._called.notify_all()
        deliver(connection, raw, fault or Fault("*"))

    def _noted(self, matched: Match | None, request: Request, fault: Fault | None) -> Call:
        name, box_id = (matched.name, matched.box_id) if matched else ("unknown", None)
        call = Call(name, request, box_id, fault=fault)
        with self._called:
            self._calls.append(call)
            self._called.notify_all()
        return call

    def _fault(self, matched: Match, request: Request) -> Fault | None:
        def fits(fault: Fault) -> bool:
            return (
                fault.route in ("*", matched.name)
                and fault.box in (None, matched.box_id)
                and (fault.page is None or (matched.name == "list" and fault.page == page_number(request)))
                and (fault.when is None or fault.when(request))
            )

        return self._script.take(fits)

    def _answer(
        self, connection: Connection, matched: Match | None, request: Request, fault: Fault
    ) -> tuple[int, bytes | None]:
        """Status and bytes of the answer; no bytes if the connection is to be closed without one."""
        if matched is not None:
            connection.pause(self._latency.by_name.get(matched.name, self._latency.default) + fault.wait)
        if fault.hold is not None:
            fault.hold.pass_through(connection.ending)
        status, document = self._act(matched, request, fault)
        if fault.hold_after is not None:
            fault.hold_after.pass_through(connection.ending)
        connection.pause(fault.late)
        if fault.drop_before or fault.drop_after:
            connection.close(reset=fault.reset)
            return 0, None
        sent_at = format_datetime(self.clock.now(), usegmt=True)
        return rendered(status, document, fault, {"Date": sent_at}, self.dialect)

    def _act(self, matched: Match | None, request: Request, fault: Fault) -> tuple[int, Any]:
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, error_body(401, "unauthorized")
        if matched is None:
            return 404, error_body(404, "not_supported")
        if not fault.acts:
            return 200, None
        for _ in range(2 if fault.twice else 1):
            status, document = self._api.answer(matched, request)
        return status, document
