"""All settings that come from the environment, looked at before anything is started: every bad one is named at once."""

from __future__ import annotations

from collections.abc import Callable

import environ
from django.core.exceptions import ImproperlyConfigured

from base.conf import from_environment
from openagents_site.database_url import database_of
from openagents_site.environment_reference import FAMILIES

SHORTEST_KEY, FEWEST_CHARACTERS = 32, 5
MAKE_A_KEY = '(this makes one: python3 -c "import secrets; print(secrets.token_urlsafe(48))")'


def check(env: environ.Env) -> None:
    """Raises ImproperlyConfigured with what is wrong with each setting, by its name. No secret is repeated."""
    looks: list[Callable[[], object]] = [lambda: _check_database(env), lambda: check_secret_key(env)]
    looks += [lambda family=family: from_environment(family, env) for _, family in FAMILIES]  # type: ignore[misc]
    if problems := [problem for look in looks if (problem := _problem(look))]:
        raise ImproperlyConfigured("; ".join(problems))


def check_secret_key(env: environ.Env) -> None:
    """There is one where none is generated, and it cannot be guessed."""
    key = env.str("SECRET_KEY", default="").strip()
    if not key and env.str("DATABASE_URL", default=""):
        raise ImproperlyConfigured(f"SECRET_KEY must be set when DATABASE_URL is set {MAKE_A_KEY}")
    if key and (len(key) < SHORTEST_KEY or len(set(key)) < FEWEST_CHARACTERS):
        raise ImproperlyConfigured(
            f"SECRET_KEY must have at least {SHORTEST_KEY} characters, {FEWEST_CHARACTERS} of them different "
            + MAKE_A_KEY
        )


def _check_database(env: environ.Env) -> None:
    if url := env.str("DATABASE_URL", default=""):
        database_of(url)


def _problem(look: Callable[[], object]) -> str:
    try:
        look()
    except ImproperlyConfigured as error:
        return str(error)
    return ""
