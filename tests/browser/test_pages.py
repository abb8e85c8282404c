"""What people do in a real browser, from signing in to stopping what they started."""

from __future__ import annotations

import re

import pytest

from accounts.models import User
from base.clock import database_now
from boxes import services
from boxes.client import client
from boxes.models import Box, ReconciliationEvent
from conversations.services import ensure_conversation
from tests.browser.conftest import PHONE, Open, picture
from tests.browser.inspector import Inspector
from tests.browser.rows import lived_in
from tests.browser.site import Site
from tests.fleet_page.conftest import make_box, make_run
from tests.peers import needs
from work.machines import start_pairing
from work.models import Machine

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),  # a browser on a crowded machine waits for everything
    pytest.mark.django_db(transaction=True),
    needs("chromium"),
    needs("playwright"),
]


def test_an_owner_watches_a_run_and_stops_its_box(open_page: Open, owner: User, site: Site) -> None:
    page = open_page(owner, may_break="/stream")
    page.goto("/fleet/")
    page.get_by_text("No box is active.").wait_for()

    page.get_by_label("Label").fill("tests")
    page.get_by_role("button", name="New box").click()
    page.get_by_label("Command for tests").fill(
        "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.4; done; printf '<b>x</b>\\033[31mred\\033[0m\\n'; sleep 60"
    )
    page.keyboard.press("Control+Enter")
    output = page.get_by_role("region", name="Output of the run on tests")
    output.get_by_text("line 2").wait_for()
    with page.expect_response(lambda answer: "/fleet/live/" in answer.url) as refreshed:
        pass
    refreshed.value.finished()  # nothing else is on its way
    site.cut_connections()
    output.get_by_text("<b>x</b>red").wait_for()
    assert output.inner_text().split("\n") == [
        *[f"line {number}" for number in range(1, 7)],
        "<b>x</b>red",
        "",
    ]
    page.get_by_text("running", exact=True).wait_for()

    page.get_by_role("button", name="Cancel the run on tests").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    page.get_by_text("cancelled", exact=True).wait_for()
    page.get_by_role("button", name="Stop tests").press("Enter")
    page.keyboard.press("Escape")
    assert Box.objects.get().is_active
    page.get_by_role("button", name="Stop tests").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Stop it").press("Enter")
    page.get_by_text("stopped by its owner", exact=True).wait_for()
    page.get_by_text("No box is active.").wait_for()
    assert "tests: stopped by its owner" in page.locator("#news").inner_text()


def test_what_changes_elsewhere_appears_and_what_is_typed_stays(open_page: Open, owner: User) -> None:
    conversation = ensure_conversation(owner)
    make_box(conversation, "free")
    page = open_page(owner)
    page.goto("/fleet/")
    page.get_by_label("Command for free").fill("make coffee")

    other = make_box(conversation, "another")
    make_run(other, "key", state="completed", exit_status=0, output="made elsewhere\n")

    page.get_by_role("region", name="Output of the run on another").get_by_text("made elsewhere").wait_for()
    assert page.get_by_label("Command for free").input_value() == "make coffee"
    assert page.evaluate("document.activeElement.name") == "command"


LINES = """async () => {
  const { Lines } = await import("/static/site/fleet/lines.js");
  const { Screen } = await import("/static/site/fleet/screen.js");
  const said = (...pieces) => {
    const lines = new Lines(), whole = pieces.flatMap((piece) => lines.take(piece));
    return [...whole, lines.current].join("|");
  };
  const pre = document.createElement("pre");
  pre.style.cssText = "height: 100px; overflow: auto";
  document.body.append(pre);
  const screen = new Screen(pre, null);
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  screen.write(Array.from({ length: 5000 }, (_, number) => `line ${number}\\n`).join(""));
  await drawn();
  const bounded = [pre.childElementCount, pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 8];
  pre.scrollTop = 0;
  screen.write("more\\n");
  await drawn();
  return {
    colours: said("\\x1b[1;31mred\\x1b[0m"), split: said("a\\x1b", "[3", "1mb"), title: said("\\x1b]0;title\\x07x"),
    progress: said("10%\\r20%", "\\r30%\\n"), newline: said("a\\r\\nb"), late: said("a\\r", "\\nb"),
    controls: said("\\x07\\x00\\x7f"), turns: said("a\\u202eb"), markup: said("<img src=x>"),
    bounded, scrolled: pre.scrollTop,
  };
}"""


def test_output_acts_on_nothing_and_is_bounded(open_page: Open, owner: User) -> None:
    page = open_page(owner)
    page.goto("/fleet/")

    assert page.evaluate(LINES) == {
        "colours": "red", "split": "ab", "title": "x", "progress": "30%|", "newline": "a|b", "late": "a|b",
        "controls": "␇␀␡", "turns": "a[U+202E]b", "markup": "<img src=x>", "bounded": [2000, True], "scrolled": 0,
    }  # fmt: skip


def test_an_owner_approves_a_pairing(open_page: Open, owner: User) -> None:
    asked = start_pairing(name="laptop", tier="curated", platform="linux", roots=["/srv/work"])
    page = open_page(owner)
    page.goto("/pair/")

    page.get_by_label("Code").fill(asked.code)
    page.keyboard.press("Enter")
    page.get_by_text("agents may read and change files").wait_for()
    picture(page, "pairing")
    page.get_by_role("button", name="Approve").click()

    page.get_by_role("heading", name="laptop is paired").wait_for()
    assert Machine.objects.get().user == owner


@pytest.fixture
def filled(owner: User) -> Box:
    """A month of an owner's boxes; one of those that run now."""
    return lived_in(owner)


@needs("axe")
def test_everyone_can_use_the_pages(open_page: Open, owner: User, staff: User, filled: Box) -> None:
    inspector, wide = Inspector(), {}
    page = open_page(viewport=PHONE)
    page.goto("/accounts/login/")
    inspector.look_at(page, "sign-in")
    page = open_page(owner, viewport=PHONE)
    for address in (f"/fleet/boxes/{filled.pk}/stop/", "/pair/", "/fleet/"):
        page.emulate_media(color_scheme="light")
        page.goto(address)
        inspector.look_at(page, address)
        wide[address] = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 320, "height": 1000})
    picture(page, "fleet-phone-dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1200, "height": 960})
    picture(page, "fleet")
    page.get_by_role("button", name="Stop web-tests").click()
    inspector.look_at(page, "dialog", "dialog")
    page = open_page(staff, viewport={"width": 1440, "height": 1240})
    page.goto("/admin/?days=30")
    picture(page, "dashboard")
    inspector.look_in_light(page, "dashboard", ".dashboard")
    page.emulate_media(color_scheme="dark")
    page.reload()  # the staff site asks the system when it is loaded
    inspector.look_in_dark(page, "dashboard", ".dashboard")
    picture(page, "dashboard-dark")

    assert inspector.wrong == {}
    assert wide == dict.fromkeys(wide, PHONE["width"])


def test_staff_sign_in_stop_a_box_and_handle_a_leak(open_page: Open, owner: User, staff: User) -> None:
    box = services.create_box(ensure_conversation(owner).id, label="forgotten")
    leaked = client().create("nobodys", ttl_seconds=3600)
    ReconciliationEvent.objects.create(
        provider_box_id=leaked.id, event_type="leak", reason="unclaimed", observed_at=database_now()
    )
    page = open_page(viewport={"width": 1440, "height": 900})
    page.goto("/")

    page.get_by_label("User name").fill("staff")
    page.get_by_label("Password").fill("staff-password")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Active boxes").click()
    page.get_by_role("link", name="forgotten").click()
    page.get_by_role("link", name=re.compile("Stop$")).click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("forgotten: stopped").wait_for()
    assert Box.objects.get(pk=box.pk).stop_reason == "user_requested"

    page.goto("/admin/")
    page.get_by_role("link", name="Open leaks").click()
    page.get_by_role("link", name=leaked.id).click()
    picture(page, "leak")
    page.get_by_role("link", name=re.compile("Stop$")).click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text(f"{leaked.id}: stopped").wait_for()
    assert ReconciliationEvent.objects.get().resolution == "stopped"
    page.goto("/admin/")
    assert page.locator(".card", has_text="Open leaks").locator(".value").inner_text() == "0"
