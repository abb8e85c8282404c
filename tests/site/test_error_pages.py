"""Where there is no page for them, people get one in the style of the others, whatever is broken."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory

from openagents_site import error_pages


def test_an_address_that_is_not_there_leads_back(db: None) -> None:
    answer = Client().get("/nope", headers={"Accept": "text/html"})

    assert answer.status_code == 404
    assert "OpenAgents Boxes</a>" in answer.text
    assert 'href="/">Back to the start' in answer.text


@pytest.mark.parametrize(
    ("view", "arguments", "status"),
    [
        (error_pages.not_found, [None], 404),
        (error_pages.refused, [PermissionDenied()], 403),
        (error_pages.form_refused, ["no cookie"], 403),
        (error_pages.failed, [], 500),
    ],
    ids=["not found", "refused", "form", "failed"],
)
def test_every_page_does_without_the_database(view, arguments, status) -> None:  # type: ignore[no-untyped-def]
    answer = view(RequestFactory().get("/x", headers={"Accept": "text/html,*/*"}), *arguments)

    assert answer.status_code == status
    assert "OpenAgents Boxes" in answer.content.decode()


def test_a_program_is_told_of_a_failure_in_the_shape_of_the_api() -> None:
    answer = error_pages.failed(RequestFactory().get("/x", headers={"Accept": "*/*"}))

    assert (answer.status_code, answer["Content-Type"]) == (500, "application/json")


def test_a_page_without_collected_files_is_still_that_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> str:
        raise ValueError("Missing staticfiles manifest entry for 'site/page.css'")

    monkeypatch.setattr("openagents_site.error_pages.render_to_string", missing)

    answer = Client().get("/nope")

    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()
