"""Every list and every page of the staff site opens, asks the same number of queries however much it shows, and tells no secret."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import ApiToken
from boxes.models import Installation
from tests.staff.conftest import MANY, list_of, page_of
from tests.staff.rows import SECRET

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
every_table = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
ONE_ROW = {Installation}


def test_every_list_is_in_the_sidebar(browser: Client) -> None:
    page = browser.get(reverse("admin:index")).content.decode()

    assert [model for model in MODELS if f'href="{list_of(model)}"' not in page] == []


@every_table
def test_an_empty_list_opens(browser: Client, model: type[Model]) -> None:
    assert browser.get(list_of(model)).status_code == 200


@every_table
def test_a_list_costs_the_same_with_many_rows(looking: Client, model: type[Model]) -> None:
    few, many = (queries_of(looking, model, shown) for shown in (1, MANY))

    assert len(many) == len(few)
    counts = [sql for sql in many if "COUNT(" in sql.upper()]
    assert [sql for sql in counts if "LIMIT" not in sql] == [], "all rows are counted"


def queries_of(browser: Client, model: type[Model], shown: int) -> list[str]:
    page = admin.site._registry[model]
    kept, page.list_per_page = page.list_per_page, shown
    try:
        with CaptureQueriesContext(connection) as queries:
            answer = browser.get(list_of(model))
    finally:
        page.list_per_page = kept
    rows = list(answer.context["cl"].result_list)
    assert len(rows) == (1 if model in ONE_ROW else shown), "the list does not show what it is asked for"
    assert_no_secret(answer.content.decode(), rows)
    return [query["sql"] for query in queries]


@every_table
def test_a_row_has_a_page_that_tells_no_secret(looking: Client, model: type[Model]) -> None:
    row = model._default_manager.last()

    page = looking.get(page_of(row))

    assert page.status_code == 200
    assert_no_secret(page.content.decode(), [row])


def assert_no_secret(text: str, rows: list[Any]) -> None:
    assert SECRET not in text
    assert [digest for row in rows for digest in digests_of(row) if digest in text] == []


def digests_of(row: Any) -> list[str]:
    """What a digest or key of the row would look like on a page."""
    names = (
        "digest",
        "token_key",
        "token_digest",
        "code_digest",
        "sealed_token",
        "browser_key_hash",
        "password",
    )
    values = [getattr(row, name, None) for name in names]
    return [_shown(value) for value in values if value]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).hex()


def test_a_tokens_page_goes_by_its_id(looking: Client) -> None:
    token = ApiToken.objects.first()
    assert token is not None

    assert looking.get(f"/admin/accounts/apitoken/{token.id}/change/").status_code == 200
    assert looking.get(f"/admin/accounts/apitoken/{token.digest}/change/").status_code == 302
    assert str(token.id) in looking.get(list_of(ApiToken)).content.decode()


@every_table
def test_names_are_said_right(model: type[Model]) -> None:
    opts = model._meta

    for name in (str(opts.verbose_name), str(opts.verbose_name_plural)):
        assert not re.search(r"(sh|x|ss|[^aeiou]y)s\b", name), name
    assert opts.verbose_name != opts.verbose_name_plural
