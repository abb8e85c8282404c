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
