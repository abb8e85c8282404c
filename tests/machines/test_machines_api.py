"""An owner's machines over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from base import hooks
from tests.conftest import ApiOf
from tests.machines.conftest import Wire, delegate, paired
from work.models import Machine
from work.services import get_job

pytestmark = pytest.mark.django_db
API = "/api/v1/machines"


def test_it_lists_the_callers_machines_newest_first(owner: User, stranger: User, api_of: ApiOf) -> None:
    first, second, _ = paired(owner), paired(owner), paired(stranger)

    page = api_of(owner).get(API).json()

    assert [machine["id"] for machine in page["results"]] == [str(second.machine.pk), str(first.machine.pk)]


def test_a_list_costs_the_same_however_long_it_is(owner: User, api_of: ApiOf) -> None:
    client = api_of(owner)
    client.get(API)  # the first use of a token is noted

    def queries(machines: int) -> int:
        paired(owner).connect()
        with CaptureQueriesContext(connection) as captured:
            assert len(client.get(API).json()["results"]) == machines
        return len(captured)

    first = queries(1)

    assert [queries(2), queries(3)] == [first, first]


def test_a_machine_is_shown_without_token_digest_or_raw_probe(
    connected: Wire, owner: User, api_of: ApiOf
) -> None:
    shown = api_of(owner).get(f"{API}/{connected.machine.pk}")

    assert shown.json()["agents"] == [{"id": "echo", "name": "Echo"}, {"id": "claude", "name": "claude"}]
    for hidden in ("digest", "last_probe", "smct_", connected.token):
        assert hidden not in shown.content.decode()


def test_online_is_what_was_heard_of_a_moment_ago(wire: Wire, owner: User, api_of: ApiOf) -> None:
    def online() -> bool:
        return api_of(owner).get(f"{API}/{wire.machine.pk}").json()["online"]

    assert online() is False
    wire.connect()
    assert online() is True
    Machine.objects.filter(pk=wire.machine.pk).update(last_seen_at=timezone.now() - timedelta(seconds=46))
    assert online() is False
    wire.poll()
    assert online() is True
    wire.client.post("/machine/v1/disconnect", {"epoch": wire.epoch})
    assert online() is False


def test_another_owners_machine_is_as_none(wire: Wire, stranger: User, api_of: ApiOf) -> None:
    client, address = api_of(stranger), f"{API}/{wire.machine.pk}"

    answers = [client.get(address), client.patch(address, {"name": "mine"}), client.delete(address), client.post(f"{address}/probe")]  # fmt: skip

    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {
        (404, "machine_not_found")
    }
    assert Machine.objects.get(pk=wire.machine.pk).status == "active"


def test_staff_see_all_if_they_ask(wire: Wire, staff: User, api_of: ApiOf) -> None:
    client = api_of(staff)

    assert client.get(API).json()["results"] == []
    assert len(client.get(f"{API}?all=true").json()["results"]) == 1


def test_changing_needs_the_scope(wire: Wire, owner: User, api_of: ApiOf) -> None:
    client, address = api_of(owner, "read", "box:control"), f"{API}/{wire.machine.pk}"

    for answer in (
        client.patch(address, {"name": "x"}),
        client.delete(address),
        client.post(f"{address}/probe"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope")


def test_it_is_renamed_and_given_less_authority(wire: Wire, owner: User, api_of: ApiOf) -> None:
    changed = api_of(owner).patch(f"{API}/{wire.machine.pk}", {"name": " study ", "tier": "probe"})

    assert (changed.json()["name"], changed.json()["tier"]) == ("study", "probe")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tier": "shell"}, "tier"),
        ({"tier": "root"}, "tier"),
        ({"tier": None}, "tier"),
        ({"name": " "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": 5}, "name"),
        ({"roots": ["/"]}, "roots"),
        ({"user": 1}, "user"),
        ({"scoped_forge_credentials_enabled": "yes"}, "scoped_forge_credentials_enabled"),
    ],
)
def test_a_bad_change_is_named_and_changes_nothing(
    wire: Wire, owner: User, api_of: ApiOf, change: dict[str, Any], field: str
) -> None:
    answer = api_of(owner).patch(f"{API}/{wire.machine.pk}", {"name": "new"} | change)

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_machine")
    assert list(answer.json()["error"]["fields"]) == [field]
    assert Machine.objects.get(pk=wire.machine.pk).name == wire.machine.name


def test_switching_git_credentials_off_is_told(
    wire: Wire, owner: User, api_of: ApiOf, monkeypatch: Any
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(hooks.machine_credentials_disabled, "_callables", [told.append])
    client, address = api_of(owner), f"{API}/{wire.machine.pk}"

    client.patch(address, {"scoped_forge_credentials_enabled": True})
    assert told == []
    client.patch(address, {"scoped_forge_credentials_enabled": False})

    assert [machine.pk for machine in told] == [wire.machine.pk]


def test_revoking_ends_the_token_at_its_next_request_and_cancels_what_runs(
    connected: Wire, owner: User, api_of: ApiOf
) -> None:
    job = delegate(connected)

    assert api_of(owner).delete(f"{API}/{connected.machine.pk}").status_code == 204

    refused = connected.polled()
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "machine_revoked")
    assert (get_job(job.pk).status, get_job(job.pk).error_code) == ("cancelled", "machine_revoked")
    gone = api_of(owner).patch(f"{API}/{connected.machine.pk}", {"name": "again"})
    assert (gone.status_code, gone.json()["error"]["code"]) == (409, "machine_revoked")


def test_a_probe_of_a_machine_that_is_not_there_says_so(wire: Wire, owner: User, api_of: ApiOf) -> None:
    answer = api_of(owner).post(f"{API}/{wire.machine.pk}/probe")

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "machine_offline")


def test_half_a_character_is_no_name(wire: Wire, owner: User, api_of: ApiOf) -> None:
    answer = api_of(owner).generic(
        "PATCH", f"{API}/{wire.machine.pk}", r'{"name": "\ud800"}', content_type="application/json"
    )

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_machine")
