"""An owner of few rows beside one of many: lists read the few."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from boxes.models import Box
from conversations.services import ensure_conversation
from tests.conftest import ApiOf

pytestmark = pytest.mark.django_db
MANY, FEW = 30_000, 5
MOST_READ = 200


@pytest.fixture
def many(owner: User, stranger: User) -> None:
    """The stranger's boxes are many and new, the owner's few and old; the planner knows of the many only."""
    mine, theirs = ensure_conversation(owner), ensure_conversation(stranger)
    one = Box.objects.create(
        conversation=mine,
        label="box-1",
        box_id="bx_1",
        state="archived",
        stopped_at=timezone.now(),
        stop_reason="user_requested",
    )
    columns = [f'"{field.column}"' for field in Box._meta.concrete_fields]
    others = {
        "id": "gen_random_uuid()",
        "box_id": "'bx_' || n",
        "label": "'box-' || n",
        "conversation_id": "%(whose)s",
    }
    copied = [others.get(column.strip('"'), column) for column in columns]
    copy = f"insert into conversation_boxes ({', '.join(columns)}) select {', '.join(copied)} from conversation_boxes,"
    with connection.cursor() as cursor:
        cursor.execute(
            "set local session_replication_role = replica"
        )  # the history of each is no part of this
        cursor.execute(
            f"{copy} generate_series(2, {FEW}) n where id = %(of)s", {"whose": mine.pk, "of": one.pk}
        )
        cursor.execute(
            f"{copy} generate_series(10, {MANY}) n where id = %(of)s", {"whose": theirs.pk, "of": one.pk}
        )
        cursor.execute("set local session_replication_role = origin")
        cursor.execute(
            "update conversation_boxes set created_at = created_at - interval '1 day' where conversation_id = %s",
            [mine.pk],
        )
        cursor.execute(
            "set local default_statistics_target = 1"
        )  # as it sees a million: few rows are in no sample
        cursor.execute("analyze users, visitors, conversations, conversation_boxes")


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("address", ["/api/v1/boxes", "/api/v1/boxes?state=archived"])
def test_it_reads_the_owners_rows_only(owner: User, api_of: ApiOf, address: str) -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        answer = api_of(owner).get(address)

    assert len(answer.json()["results"]) == FEW
    assert max(read_by(query["sql"]) for query in asked if "conversation_boxes" in query["sql"]) < MOST_READ


def read_by(sql: str) -> int:
    """Rows of boxes that the statement looks at, those that it throws away too."""
    with connection.cursor() as cursor:
        cursor.execute("explain (analyze, format json) " + sql)
        plan = cursor.fetchone()[0]
    tree = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes(tree)
        if node.get("Relation Name") == "conversation_boxes"
    )


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)
