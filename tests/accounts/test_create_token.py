"""`manage.py create_token` as an operator mistypes it."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("days", ["99999999", "0", "-1", "1.5", "soon", "3651"])
def test_a_life_that_no_token_may_have_is_refused_in_a_sentence(staff: User, days: str) -> None:
    with pytest.raises(CommandError, match="is no number of days from 1 to 3650"):
        call_command("create_token", "staff", f"--days={days}")


def test_the_longest_life_is_good(staff: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("create_token", "staff", "--days=3650")

    assert len(capsys.readouterr().out.strip()) > 20


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            [],
            "This token may do everything that its user may (--scope for less) and is good until it is revoked (--days for an end).\n",
        ),
        (["--scope=read"], "This token is good until it is revoked (--days for an end).\n"),
        (["--scope=read", "--days=3"], ""),
    ],
    ids=["nothing", "a scope", "both"],
)
def test_what_nobody_asked_for_is_told_beside_the_token(
    staff: User, capsys: pytest.CaptureFixture[str], asked: list[str], told: str
) -> None:
    call_command("create_token", "staff", *asked)

    printed = capsys.readouterr()
    assert (printed.err, len(printed.out.splitlines())) == (told, 1)
