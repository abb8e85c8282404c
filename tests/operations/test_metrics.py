"""`/metrics`: who may read it, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.models import User
from accounts.services import create_token
from base import measures
from boxes import slots
from boxes.client import client as provider_client
from boxes.errors import ProviderError
from boxes.models import Box, ReconciliationEvent
from conversations.services import ensure_conversation
from openagents_site.metrics.questions import ALL
from openagents_site.periodic import ensure_reconcile_slot
from runs.models import Run
from tests.fakes.provider import FakeProvider

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db


ELSEWHERE = {"REMOTE_ADDR": "192.0.2.7"}


def read(client: Client) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Every sample by its name and labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.content
    found: dict[str, dict[Any, float]] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def at(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


@pytest.fixture
def make_box(owner: User) -> Callable[..., Box]:
    def make(box_id: str, **fields: Any) -> Box:
        values = {"state": "ready", "setup_status": "done", "label": box_id} | fields
        return Box.objects.create(conversation=ensure_conversation(owner), box_id=box_id, **values)

    return make


def test_it_is_shown_to_the_machine_itself_but_not_through_a_proxy(client: Client):
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 401
    assert client.get("/metrics", headers={"Forwarded": "for=192.0.2.7"}).status_code == 401
    assert client.get("/metrics", **ELSEWHERE).status_code == 401


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:4600/api/box/v1", "http://localhost:4600", "http://[::1]:4600", ""]
)
def test_the_machine_itself_needs_a_token_where_boxes_are_on_it(
    client: Client, settings: Any, address: str
) -> None:
    settings.BOX_API = {"base_url": address, "api_key": "box-tests"}

    assert client.get("/metrics").status_code == 401


def test_the_machine_itself_needs_a_token_where_it_is_set_so(client: Client, settings: Any):
    settings.METRICS_TO_LOOPBACK = False

    answer = client.get("/metrics")

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_token")
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("who", "scopes", "status"),
    [("staff", ["read"], 200), ("staff", ["box:control"], 403), ("owner", ["read"], 403)],
)
def test_a_token_must_be_of_staff_and_may_read(
    client: Client, request: pytest.FixtureRequest, who: str, scopes: list[str], status: int
):
    _, plaintext = create_token(request.getfixturevalue(who), scopes=scopes)

    answer = client.get("/metrics", headers={"Authorization": f"Bearer {plaintext}"}, **ELSEWHERE)

    assert answer.status_code == status


def test_a_wrong_token_is_refused_even_on_the_machine_itself(client: Client):
    assert client.get("/metrics", headers={"Authorization": "Bearer oa_pat_wrong"}).status_code == 401


def test_signed_in_staff_may_read_and_others_may_not(client: Client, staff: User, owner: User):
    client.force_login(owner)
    assert client.get("/metrics", **ELSEWHERE).status_code == 403

    client.force_login(staff)
    assert client.get("/metrics", **ELSEWHERE).status_code == 200


def test_it_tells_active_boxes_by_state_and_forgets_stopped_ones(
    client: Client, make_box: Callable[..., Box]
):
    make_box("bx_1")
    make_box("bx_2", state="running", estimated_burn_rate_microusd=100_000)
    make_box("bx_3", state="archived", stopped_at="2026-01-01T00:00:00Z", stop_reason="ttl_expired")

    found = read(client)

    assert found["openagents_boxes"][at(state="ready")] == 1
    assert found["openagents_boxes"][at(state="running")] == 1
    assert found["openagents_boxes"][at(state="archived")] == 0
    assert found["openagents_burn_rate_microusd_per_hour"][at(state="running")] == 100_000
    assert found["openagents_boxes_awaiting_settlement"][()] == 1


def test_it_tells_spending_against_its_ceiling(
    client: Client, make_box: Callable[..., Box], box_api: Callable[..., None]
):
    box_api(budget_month_microusd=5_000_000)
    with connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        now = cursor.fetchone()[0]
    make_box(
        "bx_1", state="archived", stopped_at=now, stop_reason="ttl_expired", settled_cost_microusd=1_250_000
    )

    found = read(client)

    assert found["openagents_spend_microusd"] == {
        at(period="month"): 1_250_000,
        at(period="today"): 1_250_000,
    }
    assert found["openagents_spend_ceiling_microusd"][()] == 5_000_000


def test_it_tells_open_leaks_and_events(client: Client):
    for number, kind in enumerate(["leak", "leak", "unknown_state"]):
        ReconciliationEvent.objects.create(
            provider_box_id=f"bx_{number}",
            event_type=kind,
            reason="x",
            owned=True,
            observed_at="2026-01-01T00:00:00Z",
        )
    ReconciliationEvent.objects.filter(provider_box_id="bx_1").update(handled_at="2026-01-02T00:00:00Z")

    found = read(client)

    assert found["openagents_leaks_open"] == {at(owned="true"): 1, at(owned="false"): 0}
    assert found["openagents_events_open"][at(event_type="unknown_state", owned="true")] == 1


def test_it_tells_what_is_due_and_for_how_long(client: Client, make_box: Callable[..., Box]):
    box = make_box("bx_1")
    with connection.cursor() as cursor:
        cursor.execute(
            "update conversation_boxes set next_provision_at = clock_timestamp() - interval '90 seconds'"
        )

    found = read(client)

    assert found["openagents_queue_due"][at(queue="provisioning")] == 1
    assert found["openagents_queue_oldest_seconds"][at(queue="provisioning")] >= 90
    assert found["openagents_queue_due"][at(queue="runs")] == 0
    assert box.is_active


def test_a_late_pass_shows_in_its_lag(client: Client):
    ensure_reconcile_slot()
    with connection.cursor() as cursor:
        cursor.execute("update schedule_slots set next_at = clock_timestamp() - interval '5 minutes'")

    found = read(client)

    assert found["openagents_pass_late_seconds"][at(name="reconcile")] >= 300


def test_a_pass_is_counted_by_how_it_ended(client: Client):
    before = measures.PASSES.labels("counted", "ok")._value.get()
    slots.ensure("counted", interval_ms=1000, initial_delay_ms=0)

    slots.run_if_due("counted", slots.Holder(), lambda: {"seen": 1})

    assert read(client)["openagents_passes_total"][at(name="counted", outcome="ok")] == before + 1


def test_calls_to_the_provider_are_counted_by_what_came_of_them(
    client: Client, staff: User, provider: FakeProvider
):
    client.force_login(staff)

    def count(outcome: str) -> float:
        return measures.PROVIDER_CALLS.labels("list", outcome)._value.get()

    good, bad = count("ok"), count("http_503")
    provider_client().list_page(limit=1, timeout_seconds=5, tries=1)
    provider.always("list", status=503)
    with pytest.raises(ProviderError):
        provider_client().list_page(limit=1, timeout_seconds=5, tries=1)

    found = read(client)

    assert found["openagents_provider_calls_total"][at(call="list", outcome="ok")] == good + 1
    assert found["openagents_provider_calls_total"][at(call="list", outcome="http_503")] == bad + 1
    assert found["openagents_provider_call_seconds_count"][at(call="list")] >= 2


@pytest.mark.parametrize(
    ("status", "outcome"), [(204, "ok"), (418, "http_4xx"), (429, "http_429"), (599, "http_5xx")]
)
def test_rare_statuses_share_a_label(status: int, outcome: str):
    assert measures.status_outcome(status) == outcome


def test_requests_are_counted_by_view(client: Client):
    client.get("/healthz")

    found = read(client)

    labels = [dict(key) for key in found["django_http_requests_latency_seconds_by_view_method_count"]]
    assert {"view": "openagents_site.health.healthz", "method": "GET"} in labels


def test_without_a_database_it_tells_that_and_the_counters(client: Client):
    with connection.execute_wrapper(no_database):
        found = read(client)

    assert found["openagents_database_up"][()] == 0
    assert "openagents_boxes" not in found
    assert "django_http_requests_before_middlewares_total" in found


def no_database(*_: object) -> None:
    raise OperationalError("the connection is closed")


def test_it_asks_the_same_number_of_questions_however_many_rows_there_are(
    client: Client, make_box: Callable[..., Box]
):
    read(client)
    with CaptureQueriesContext(connection) as few:
        read(client)
    for number in range(30):
        make_box(f"bx_{number}", state=["ready", "running", "idle"][number % 3])

    with CaptureQueriesContext(connection) as many:
        read(client)

    assert len(many) == len(few)


LEDGERS = {"conversation_boxes", "box_runs", "work_jobs", "forge_assignments", "box_reconciliation_events",
           "box_webhook_deliveries", "box_fanout_items", "incidents"}  # fmt: skip


LIVE_ROWS = """select indexname from pg_indexes where indexdef like '% WHERE %' and indexname not in
    ('conversation_boxes_month_index', 'incidents_owner_index', 'incidents_correlation_index')"""


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.gauges[0].name)
def test_every_question_is_answered_by_an_index_of_live_rows_or_a_range_of_another(
    question: Any, make_box: Callable[..., Box]
):
    """Beside a history that the planner knows of: without figures of it an index of all rows looks as cheap."""
    remember(make_box("bx_old"))
    with connection.cursor() as cursor:
        cursor.execute(LIVE_ROWS)
        live = {row[0] for row in cursor.fetchall()}
        cursor.execute("set local enable_seqscan = off")
        assert [scan for scan in scans_of(cursor, question.sql) if not is_bounded(scan, live)] == []


def remember(box: Box) -> None:
    """Fill the ledgers of boxes and runs with settled copies of this box and of a run on it."""
    Box.objects.filter(pk=box.pk).update(
        state="archived", stopped_at=Now(), stop_reason="user_requested", lifetime_seconds=1,
        settled_cost_microusd=1, usage_settled_at=Now(),
    )  # fmt: skip
    run = Run.objects.create(
        conversation=box.conversation, conversation_box=box, command="true", idempotency_key="old", state="completed",
        requesting_principal={}, run_directory="/tmp/openagents-box-runs/old", admitted_at=timezone.now(),
        deadline_at=timezone.now(), finished_at=timezone.now(), exit_status=0,
    )  # fmt: skip
    copy(box, box_id="'old_' || n", label="'old-' || n", created_at="t.created_at - n * interval '1 hour'")
    copy(run, idempotency_key="'old-' || n", admitted_at="t.admitted_at - n * interval '1 hour'")


def copy(row: Box | Run, **changed: str) -> None:
    """Three thousand copies; `changed` are SQL expressions of the copy's number `n` and the row `t`."""
    table = row._meta.db_table
    columns = [str(field.column) for field in row._meta.concrete_fields]
    values = {column: f"t.{column}" for column in columns} | {"id": "gen_random_uuid()"} | changed
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into {table} ({', '.join(columns)}) select {', '.join(values[column] for column in columns)}"
            f" from {table} t, generate_series(1, 3000) n where t.id = %s",
            [row.pk],
        )
        cursor.execute(f"analyze {table}")


def scans_of(cursor: Any, sql: str) -> list[dict[str, Any]]:
    cursor.execute("explain (format json) " + sql)
    return scans(cursor.fetchone()[0][0]["Plan"])


def is_bounded(scan: dict[str, Any], live: set[str]) -> bool:
    return scan.get("Index Name") in live or "Index Cond" in scan


def scans(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes that read a ledger; what a bitmap names is read by the index scans below it."""
    inner = [scan for child in plan.get("Plans", ()) for scan in scans(child)]
    reads = plan.get("Relation Name") in LEDGERS or plan["Node Type"] == "Bitmap Index Scan"
    return inner + ([plan] if reads and plan["Node Type"] != "Bitmap Heap Scan" else [])
