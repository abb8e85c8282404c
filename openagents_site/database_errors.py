"""One sentence for what the database refuses and an operator can mend: nothing answers, the server is too old, a right is missing."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from django.conf import settings
from django.db import NotSupportedError, OperationalError
from psycopg.errors import InsufficientPrivilege

from base.embedded_postgres import explain

# SQLSTATE classes of a connection that was refused or lost: connection, authorization, no such database, shutdown.
UNREACHABLE = ("08", "28", "3D", "57P")


def sentence(error: BaseException) -> str | None:
    """What to do about it, or None if this error is about something else."""
    for cause in _causes(error):
        if isinstance(cause, InsufficientPrivilege):
            return _missing_right(_first_line(cause))
        if isinstance(cause, NotSupportedError):
            return f"the database cannot be used: {_first_line(cause)}"
        if _is_unreachable(cause):
            return _away(cause)
    return None


def what_happened(error: BaseException) -> str:
    """The first line of an error that has no sentence; where the database is its cause, in the database's own words."""
    said = [cause.diag.message_primary for cause in _causes(error) if isinstance(cause, psycopg.Error)]
    return next(filter(None, said), None) or _first_line(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those behind it."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_unreachable(error: BaseException) -> bool:
    if isinstance(error, psycopg.OperationalError):
        return error.sqlstate is None or error.sqlstate.startswith(UNREACHABLE)
    return isinstance(error, OperationalError) and not isinstance(error.__cause__, psycopg.Error)


def _away(error: BaseException) -> str:
    if settings.EMBEDDED:
        return explain(error) or f"the database does not answer: {_first_line(error)}"
    return f"the database does not answer as DATABASE_URL names it: {_first_line(error)}"


def _missing_right(said: str) -> str:
    database = settings.DATABASES["default"]
    role, name = str(database["USER"]), str(database["NAME"])
    grant = f"GRANT ALL ON SCHEMA public TO {_quoted(role)}"
    if not said.startswith("permission denied for schema"):
        grant = f"ALTER DATABASE {_quoted(name)} OWNER TO {_quoted(role)}"
    return (
        f"the role {role} lacks a right in the database {name}: {said}"
        f" (as a superuser, in that database: {grant};)"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
