"""What people do in a real browser, from signing in to stopping what they started."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests.browser.conftest import Open, picture
from tests.peers import needs

pytestmark = [
    pytest.mark.system,
    pytest.mark.django_db(transaction=True),
    needs("chromium"),
    needs("playwright"),
]


def test_an_owner_watches_a_run_and_stops_its_box(open_page: Open, owner: User) -> None:
    page = open_page(owner)
    page.goto("/fleet/")
    page.get_by_text("No box is active.").wait_for()

    page.get_by_label("Label").fill("tests")
    page.get_by_role("button", name="New box").click()
    page.get_by_label("Command for tests").fill("for i in 1 2 3; do echo line $i; sleep 1; done; sleep 30")
    page.keyboard.press("Control+Enter")
    output = page.get_by_role("region", name="Output of the run on tests")
    output.get_by_text("line 1").wait_for()
    output.get_by_text("line 3").wait_for()
    page.get_by_text("running", exact=True).wait_for()
    picture(page, "fleet")

    page.get_by_role("button", name="Cancel the run on tests").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    page.get_by_text("cancelled", exact=True).wait_for()
    page.get_by_role("button", name="Stop tests").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Stop tests").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
    page.get_by_text("stopped by its owner", exact=True).wait_for()
    assert page.get_by_text("No box is active.").is_visible()


def test_staff_sign_in_and_see_what_goes_on(open_page: Open, staff: User) -> None:
    page = open_page()
    page.goto("/")
    picture(page, "sign-in")

    page.get_by_label("User name").fill("staff")
    page.get_by_label("Password").fill("staff-password")
    page.get_by_role("button", name="Sign in").click()

    page.get_by_role("heading", name="Overview").first.wait_for()
    page.get_by_role("link", name="Active boxes").wait_for()
    picture(page, "dashboard")
    dark = open_page(staff, color_scheme="dark", viewport={"width": 390, "height": 800})
    dark.goto("/admin/")
    picture(dark, "dashboard-dark")
