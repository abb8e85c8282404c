"""What a change happened in (user, request) stands in each row of history; no table of contexts is written beside it.

The triggers of whole statements that django-pghistory makes call `_pgh_attach_context()` even so, which would write a row that
nobody reads and nothing deletes, in a subtransaction of its own, with every statement. So that function does nothing here.
"""

from __future__ import annotations

from typing import Any

from django.db import connections

NOTHING = "create or replace function _pgh_attach_context() returns uuid language sql immutable as 'select null::uuid'"


def write_none(*, using: str, **_: Any) -> None:
    """Replace the function, after every `migrate`. The migrations of django-pghistory make it anew."""
    with connections[using].cursor() as cursor:
        cursor.execute(NOTHING)
