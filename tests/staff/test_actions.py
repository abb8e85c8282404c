"""What staff do to rows: asked first, done row by row, logged with who did it, and told row by row."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from accounts.models import ApiToken, User
from accounts.services import create_token
from base.history import rows_of, transitions
from boxes.models import Box, FanoutItem, FanoutRequest, ReconciliationEvent
from conversations.services import ensure_conversation
from forge.models import Assignment
from runs.models import Run
from tests.fakes.provider import FakeProvider
from tests.staff.conftest import list_of, page_of
from tests.staff.rows import NOW, Rows
from work.models import Incident, Job, Machine

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> Rows:
    """One row of each table."""
    made = Rows(0)
    made.make()
    return made


def in_list(browser: Client, model: Any, action: str, *chosen: Any, **values: Any) -> str:
    """The page after doing it to these rows from the list; first it is asked."""
    posted = {
        "action": action,
        "index": "0",
        "_selected_action": [str(getattr(row, "id", row.pk)) for row in chosen],
    }
    question = browser.post(list_of(model), posted)
    assert "confirmed" in question.content.decode()
    return browser.post(list_of(model), posted | values | {"confirmed": "yes"}, follow=True).content.decode()


def on_page(browser: Client, row: Any, action: str, **values: Any) -> str:
    """The page after doing it from the row's own page; first it is asked."""
    target = page_of(row).replace("/change/", f"/do/{action}/")
    assert "confirmed" in browser.get(target).content.decode()
    return browser.post(target, values | {"confirmed": "yes"}, follow=True).content.decode()


def last_actor(row: Any) -> tuple[str, str | None]:
    actor = transitions(rows_of(type(row), row.pk)[:1])[0].actor
    return actor.type, actor.name


def logged() -> list[tuple[str, str, str]]:
    entries = LogEntry.objects.filter(user__username="staff").order_by("pk")
    return [(str(entry.user), entry.object_repr, entry.change_message) for entry in entries]


def test_nothing_is_done_before_it_is_confirmed(browser: Client, rows: Rows) -> None:
    page = browser.get(page_of(rows.run).replace("/change/", "/do/cancel/"))

    assert "make test" in page.content.decode()
    assert Run.objects.get().cancellation_requested_at is None
    assert logged() == []


def test_each_box_is_stopped_and_told_of_by_itself(
    browser: Client, rows: Rows, provider: FakeProvider
) -> None:
    made = {name: box(rows, name) for name in ("fine", "gone", "stuck")}
    Box.objects.filter(pk=made["gone"].pk).update(stopped_at=NOW, state="archived", stop_reason="ttl_expired")
    for each in made.values():
        provider.add_box(each.box_id)
    provider.always("stop", box=made["stuck"].box_id, status=500)

    page = in_list(browser, Box, "stop", *made.values())

    assert "fine: stopped" in page
    assert "gone: The box is stopped. (box_stopped)" in page
    assert "stuck: " in page
    assert [name for _, name, _ in logged()] == ["stuck", "gone", "fine"]
    assert Box.objects.get(label="fine").stop_reason == "user_requested"
    assert last_actor(made["fine"]) == ("user", "staff")


def box(rows: Rows, label: str) -> Box:
    return Box.objects.create(
        conversation=rows.conversation, label=label, box_id=f"bx_{label}", state="ready", setup_status="done"
    )


def test_a_box_is_stopped_from_its_page_and_not_offered_again(
    browser: Client, rows: Rows, provider: FakeProvider
) -> None:
    provider.add_box(rows.box.box_id)

    page = on_page(browser, rows.box, "stop")

    assert "row-0: stopped" in page
    assert "/do/stop/" not in page
    assert "user staff" in page


def test_a_box_that_cannot_be_stopped_is_closed(browser: Client, rows: Rows) -> None:
    on_page(browser, rows.box, "forget")

    assert Box.objects.get(pk=rows.box.pk).stop_reason == "forgotten"
    assert last_actor(rows.box) == ("user", "staff")


def test_a_run_is_cancelled(browser: Client, rows: Rows) -> None:
    first = in_list(browser, Run, "cancel", rows.run)
    again = on_page(browser, rows.run, "cancel")

    assert "is being ended" in first
    assert "is being ended" in again
    assert Run.objects.get().cancellation_requested_at is not None
    assert last_actor(rows.run) == ("user", "staff")
    assert len(logged()) == 2


def test_a_run_that_has_ended_is_told_of(browser: Client, rows: Rows) -> None:
    Run.objects.update(state="completed", finished_at=NOW)

    assert "had ended: completed" in in_list(browser, Run, "cancel", rows.run)


@pytest.fixture
def leak(rows: Rows) -> ReconciliationEvent:
    return ReconciliationEvent.objects.create(
        provider_box_id="bx_lost", event_type="leak", reason="x", observed_at=NOW, details={"id": "bx_lost"}
    )


@pytest.mark.parametrize(("action", "resolution"), [("stop", "stopped"), ("dismiss", "dismissed")])
def test_a_leak_is_handled_once(
    browser: Client, leak: ReconciliationEvent, provider: FakeProvider, action: str, resolution: str
) -> None:
    provider.add_box("bx_lost")

    page, again = (in_list(browser, ReconciliationEvent, action, leak) for _ in range(2))

    leak.refresh_from_db()
    assert (leak.resolution, str(leak.handled_by)) == (resolution, "staff")
    assert f": {resolution}" in page
    assert "leak_handled" in again
    assert last_actor(leak) == ("user", "staff")


@pytest.mark.parametrize("named", ["user", "conversation"])
def test_a_leak_is_adopted_by_whom_staff_name(
    browser: Client, leak: ReconciliationEvent, owner: User, provider: FakeProvider, named: str
) -> None:
    provider.add_box("bx_lost")
    theirs = ensure_conversation(owner)
    name = owner.username if named == "user" else str(theirs.pk)

    page = on_page(browser, leak, "adopt", conversation=name, label="found")

    assert Box.objects.get(label="found").conversation == theirs
    assert "adopted as found" in page


def test_adopting_for_nobody_is_asked_again(browser: Client, leak: ReconciliationEvent) -> None:
    page = on_page(browser, leak, "adopt", conversation="nobody-at-all")

    assert "There is no such user" in page
    leak.refresh_from_db()
    assert leak.handled_at is None


def test_what_is_no_leak_is_refused_by_itself(browser: Client, rows: Rows) -> None:
    odd = ReconciliationEvent.objects.create(
        provider_box_id="x", event_type="malformed_id", reason="x", observed_at=NOW
    )

    assert "leak_not_found" in in_list(browser, ReconciliationEvent, "dismiss", odd)


def test_what_waits_of_a_plan_is_given_up(browser: Client, rows: Rows) -> None:
    plan = FanoutRequest.objects.get()
    FanoutItem.objects.update(state="queued", box=None)
    FanoutRequest.objects.update(queued_count=1)

    assert "1 no longer wait" in on_page(browser, plan, "cancel")
    assert FanoutItem.objects.get().state == "refused"


def test_a_job_is_cancelled(browser: Client, rows: Rows) -> None:
    page = in_list(browser, Job, "cancel", rows.job)

    assert "has ended" in page
    assert Job.objects.get().status == "cancelled"
    assert last_actor(rows.job) == ("user", "staff")
    assert "had ended: cancelled" in on_page(browser, rows.job, "cancel")


def test_an_assignment_is_cancelled_with_its_credential(browser: Client, rows: Rows) -> None:
    in_list(browser, Assignment, "cancel", rows.assignment)

    ended = Assignment.objects.select_related("credential").get()
    assert (ended.state, ended.failure_reason) == ("cancelled", "cancelled_by_request")
    assert ended.credential.revoked_at is not None
    assert last_actor(ended) == ("user", "staff")


def test_an_assignment_expires_only_after_its_deadline(browser: Client, rows: Rows) -> None:
    refused = in_list(browser, Assignment, "expire", rows.assignment)

    assert "assignment_not_due" in refused
    assert Assignment.objects.get().state == "admitted"


def test_an_overdue_assignment_expires(browser: Client) -> None:
    late = Rows(0)
    late.deadline = NOW
    late.make()

    on_page(browser, late.assignment, "expire")

    assert Assignment.objects.get().failure_reason == "assignment_expired"


def test_a_machine_is_revoked(browser: Client, rows: Rows) -> None:
    page, again = (in_list(browser, Machine, "revoke", rows.machine) for _ in range(2))

    assert Machine.objects.get().status == "revoked"
    assert "row-0: revoked" in page
    assert "was revoked before" in again


def test_an_incident_is_closed_with_what_mended_it(browser: Client, rows: Rows) -> None:
    incident = Incident.objects.get()

    on_page(browser, incident, "close", status="resolved", receipt_ref="change 12")

    incident.refresh_from_db()
    assert (incident.status, incident.receipt_ref) == ("resolved", "change 12")
    assert last_actor(incident) == ("user", "staff")


def test_a_token_is_revoked_and_its_digest_not_told(browser: Client, rows: Rows) -> None:
    token = ApiToken.objects.get(name="row-0")

    page = in_list(browser, ApiToken, "revoke", token)
    in_list(browser, ApiToken, "revoke", token)

    token.refresh_from_db()
    assert token.revoked_at is not None
    assert token.digest not in page
    assert LogEntry.objects.filter(object_id=str(token.id)).count() == 2


def test_a_token_is_shown_once(browser: Client, rows: Rows, api_of: Any) -> None:
    wanted = {"username": "row-0", "name": "ci", "scopes": ["read", "box:control"], "days": "7"}

    made = browser.post(reverse("admin:accounts_apitoken_add"), wanted)

    token = ApiToken.objects.get(name="ci")
    plaintext = made.content.decode().split('<code id="token">')[1].split("</code>")[0]
    assert (token.user, token.scopes, token.expiry is not None) == (rows.user, ["read", "box:control"], True)
    assert Client().get("/api/v1/me", headers={"Authorization": f"Bearer {plaintext}"}).status_code == 200
    assert "no-store" in made.headers["Cache-Control"]
    assert plaintext not in browser.get(page_of(token)).content.decode()
    assert logged()[-1][2] == "Created, may read, box:control"


@pytest.mark.parametrize(
    "change", [{"username": "nobody"}, {"scopes": []}, {"scopes": ["all"]}, {"days": "0"}, {"name": "x" * 81}]
)
def test_no_token_is_made_of_what_is_not_right(browser: Client, rows: Rows, change: dict[str, Any]) -> None:
    known = ApiToken.objects.count()

    page = browser.post(
        reverse("admin:accounts_apitoken_add"), {"username": "row-0", "scopes": ["read"]} | change
    )

    assert (page.status_code, ApiToken.objects.count()) == (200, known)
    assert "alert" in page.content.decode()


def test_one_bad_row_costs_only_itself(browser: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Machine.objects.create(
        user=rows.user,
        name="other",
        tier="curated",
        token_digest=b"x" * 32,
        token_expires_at="2036-01-01T00:00Z",
    )
    real = Machine.refresh_from_db

    def breaks(machine: Machine, *args: Any, **kwargs: Any) -> None:
        if machine.name == "other":
            raise RuntimeError("a secret text")
        real(machine, *args, **kwargs)

    monkeypatch.setattr(Machine, "refresh_from_db", breaks)
    page = in_list(browser, Machine, "revoke", rows.machine, other)

    assert "row-0: revoked" in page
    assert "other: It failed" in page
    assert "a secret text" not in page


def test_too_many_rows_at_once_are_refused(browser: Client, rows: Rows) -> None:
    for number in range(101):
        create_token(rows.user, name=f"token-{number}")
    posted = {"action": "revoke", "index": "0", "confirmed": "yes"}
    posted["_selected_action"] = [str(token.id) for token in ApiToken.objects.all()]  # type: ignore[assignment]

    page = browser.post(list_of(ApiToken), posted, follow=True)

    assert "At most 100 rows" in page.content.decode()
    assert not ApiToken.objects.exclude(revoked_at=None).exists()


@pytest.mark.parametrize("key", ["nonsense", "a\0b", str(uuid4())], ids=["no id", "no text", "gone"])
def test_what_is_ticked_and_not_there_is_told_and_holds_up_no_other(
    browser: Client, rows: Rows, key: str
) -> None:
    posted = {"action": "cancel", "index": "0", "_selected_action": [key]}
    alone = browser.post(list_of(Run), posted, follow=True)
    beside = browser.post(list_of(Run), posted | {"_selected_action": [key, str(rows.run.pk)]})

    assert 'name="confirmed"' not in alone.content.decode()
    assert list(alone.context["messages"])
    assert [row[0] for row in beside.context["rows"]] == [rows.run.pk]


@pytest.mark.parametrize("key", ["nonsense", "a\0b"])
def test_a_token_that_is_none_is_not_chosen(browser: Client, rows: Rows, key: str) -> None:
    posted = {"action": "revoke", "index": "0", "_selected_action": [key]}

    assert list(browser.post(list_of(ApiToken), posted, follow=True).context["messages"])


def test_rows_once_asked_about_stay_chosen_whatever_the_list_is_filtered_by(
    browser: Client, rows: Rows
) -> None:
    posted = {"action": "cancel", "index": "0", "_selected_action": [str(rows.run.pk)]}
    question = browser.post(f"{list_of(Run)}?state__exact=running", posted).content.decode()
    Run.objects.update(state="completed", finished_at=NOW)

    assert f'action="{list_of(Run)}"' in question
    done = browser.post(list_of(Run), posted | {"confirmed": "yes", "filters": "state__exact=running"})
    assert done.headers["Location"] == f"{list_of(Run)}?state__exact=running"
    assert logged()[-1][2] == "Cancel: had ended: completed"
