"""The staff pages beside a million boxes, runs and sightings: the dashboard, each list, filter, search and page, and
the same of tables with a thousand, in which every list has as many rows to show. The pages are made in this process, by the product's own code; PostgreSQL runs on the same machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.database import throwaway_database, without_indexes
from benchmarks.results import Row, report

ROWS = 1_000_000
FEW = 1_000
PAGE = 50
CONVERSATIONS = 2_000
REPEATS = 7
TARGET = "at most 3 times"
DASHBOARD = "/admin/"
BOXES, RUNS, SIGHTINGS = "/admin/boxes/box/", "/admin/runs/run/", "/admin/boxes/reconciliationevent/"


def main(*, json: bool) -> None:
    """Measure and print."""
    with throwaway_database():
        from django.test.utils import override_settings

        with override_settings(STORAGES=_without_collected_files(), STATIC_ROOT=None):
            rows = list(_measured())
    report("admin", rows, as_json=json)


def _measured() -> Iterator[Row]:
    browser = _signed_in()
    _write(0, FEW)
    cases = _cases()
    empty = {name: _milliseconds(browser, address) for name, address in cases.items()}
    _write(FEW, ROWS)
    for name, address in _cases().items():
        yield Row(name, _milliseconds(browser, address), "ms", empty[name], TARGET)


def _cases() -> dict[str, str]:
    """What is opened, by what it is called."""
    from boxes.models import Box, ReconciliationEvent
    from runs.models import Run

    box, run = Box.objects.order_by("created_at").last(), Run.objects.order_by("admitted_at").last()
    sighting = ReconciliationEvent.objects.order_by("observed_at").last()
    assert box is not None
    assert run is not None
    assert sighting is not None
    day = f"{box.created_at:created_at__year=%Y&created_at__month=%-m&created_at__day=%-d}"
    return {
        "the dashboard, 7 days": DASHBOARD,
        "the dashboard, 30 days": f"{DASHBOARD}?days=30",
        "boxes": BOXES,
        "boxes, active ones": f"{BOXES}?life=active",
        "boxes, failed ones": f"{BOXES}?state__exact=error",
        "boxes, a reason of the stop": f"{BOXES}?stop_reason__exact=forgotten",
        "boxes, a day": f"{BOXES}?{day}",
        "boxes, the last page": f"{BOXES}?p=2",
        "boxes, by provider's id": f"{BOXES}?q={box.box_id}",
        "boxes, by the first digits of an id": f"{BOXES}?q={str(box.pk)[:8]}",
        "boxes, by an owner's name": f"{BOXES}?q=owner-1",
        "boxes, nothing found": f"{BOXES}?q=nothing-has-this-name",
        "a box": f"{BOXES}{box.pk}/change/",
        "runs": RUNS,
        "runs, running": f"{RUNS}?state__exact=running",
        "runs, lost": f"{RUNS}?state__exact=lost",
        "runs, completed": f"{RUNS}?state__exact=completed",
        "runs, not killed for certain": f"{RUNS}?kill=unconfirmed",
        "runs, of a box": f"{RUNS}?conversation_box__id__exact={run.conversation_box_id}",
        "runs, by an owner's name": f"{RUNS}?q=owner-1",
        "a run": f"{RUNS}{run.pk}/change/",
        "sightings": SIGHTINGS,
        "sightings, open leaks": f"{SIGHTINGS}?handled=no&event_type__exact=leak",
        "sightings, adopted": f"{SIGHTINGS}?resolution__exact=adopted",
        "sightings, by provider's id": f"{SIGHTINGS}?q={sighting.provider_box_id}",
        "a sighting": f"{SIGHTINGS}{sighting.pk}/change/",
    }


def _milliseconds(browser: Any, address: str) -> float:
    """The best of so many: what else the machine does makes a page slower and never faster."""
    return 1000 * min(_opened(browser, address) for _ in range(REPEATS))


def _opened(browser: Any, address: str) -> float:
    started = time.monotonic()
    answer = browser.get(address)
    spent = time.monotonic() - started
    assert answer.status_code == 200, (address, answer.status_code)
    return spent


def _signed_in() -> Any:
    from django.test import Client

    from accounts.models import User

    browser = Client(SERVER_NAME="127.0.0.1")
    browser.force_login(
        User.objects.create_superuser(username="staff"),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return browser


def _without_collected_files() -> dict[str, Any]:
    files = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    return {"default": {"BACKEND": "django.core.files.storage.InMemoryStorage"}, "staticfiles": files}


# what it is measured on


TABLES = ("conversation_boxes", "box_runs", "box_reconciliation_events")


def _write(first: int, last: int) -> None:
    """Rows as years of service leave them: one box, one run and one sighting a minute, nearly all of them over."""
    from django.db import connection

    rare = last // PAGE  # every so many-th row is of a rare kind, so that these fill one page
    owners = CONVERSATIONS if first else FEW // PAGE
    values = {"first": first, "last": last - 1, "owners": owners, "all": last, "rare": rare}
    with connection.cursor() as cursor:
        cursor.execute("set session_replication_role = replica")  # no triggers: these rows are made up
        if first == 0:
            cursor.execute(_OWNERS, values | {"owners": CONVERSATIONS})
        for table, statement in zip(TABLES, (_BOXES, _RUNS, _SIGHTINGS), strict=True):
            with without_indexes(table):
                cursor.execute(statement, values)
        cursor.execute("set session_replication_role = origin")
        cursor.execute("vacuum analyze")


_AT = "now() - (%(all)s - n) * interval '1 minute'"
_CONVERSATION = "md5('conversation' || n %% %(owners)s)::uuid"

_OWNERS = """
    insert into users (id, password, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined,
        slug, github_login, github_avatar_url)
    select md5('user' || n)::uuid, '!', false, 'owner-' || n, '', '', '', false, true, now(), 'owner-' || n, '', ''
    from generate_series(0, %(owners)s - 1) n;
    insert into visitors (id, user_id, created_at) select md5('visitor' || n)::uuid, md5('user' || n)::uuid, now()
    from generate_series(0, %(owners)s - 1) n;
    insert into conversations (id, visitor_id, created_at)
    select md5('conversation' || n)::uuid, md5('visitor' || n)::uuid, now() from generate_series(0, %(owners)s - 1) n
"""
_BOXES = f"""
    insert into conversation_boxes (id, conversation_id, box_id, label, state, setup_status, created_at, budgeted,
        estimated_burn_rate_microusd, create_attempts, create_unknown, ready_checks, provision_failures, stopped_at,
        stop_reason, lifetime_seconds, settled_cost_microusd, usage_settled_at, settlement_attempts,
        reconciliation_failures, undone_sightings, generation)
    select md5('box' || n)::uuid, {_CONVERSATION}, 'bx_' || n, 'box-' || n,
        case when n >= %(all)s - 50 or n < 50 then 'ready' when n %% %(rare)s = 15 then 'error' else 'archived' end, 'done', {_AT},
        false, 0, 1, false, 0, 0, case when n >= %(all)s - 50 or n < 50 then null else {_AT} + interval '1 hour' end,
        case when n >= %(all)s - 50 or n < 50 then null when n %% %(rare)s = 15 then 'forgotten' else 'idle_timeout' end,
        3600, 10000, now(), 1, 0, 0, 1
    from generate_series(%(first)s, %(last)s) n
"""  # noqa: S608 - constants of ours
_RUNS = f"""
    insert into box_runs (id, conversation_id, conversation_box_id, requesting_principal, command, idempotency_key, state,
        timed_out, run_directory, output, output_base_offset, last_output_offset, received_offset, log_size,
        dropped_bytes, admitted_at, deadline_at, finished_at, exit_status, probe_attempts, step_failures, dead_sightings,
        kill_attempts, quiet_polls, next_step_at, kill_confirmed, generation)
    select md5('run' || n)::uuid, {_CONVERSATION}, md5('box' || n)::uuid, '{{}}', 'make test', 'key-' || n,
        case when n >= %(all)s - 50 or n < 20 then 'running' when n %% %(rare)s = 15 then 'lost'
             when n %% 20 = 0 then 'failed' else 'completed' end,
        false, '/tmp/run', repeat('a line of output' || chr(10), 20), 0, 340, 340, 340, 0, {_AT},
        {_AT} + interval '1 hour', {_AT} + interval '5 minutes', 0, 0, 0, 0, 0, 0, null,
        case when n %% %(rare)s = 15 then false end, 1
    from generate_series(%(first)s, %(last)s) n
"""  # noqa: S608
_SIGHTINGS = f"""
    insert into box_reconciliation_events (id, provider_box_id, event_type, reason, details, owned, observed_at, handled_at,
        resolution)
    select md5('event' || n)::uuid, 'leak_' || n, case when n %% 10 = 0 then 'unknown_state' else 'leak' end, 'unclaimed',
        '{{"id": "leak"}}', n %% 2 = 0, {_AT}, case when n >= %(all)s - 50 or n < 20 then null else {_AT} end,
        case when n >= %(all)s - 50 or n < 20 then null when n %% %(rare)s = 15 then 'adopted' else 'stopped' end
    from generate_series(%(first)s, %(last)s) n
"""  # noqa: S608
