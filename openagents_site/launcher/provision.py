"""Prepare the database for a start: `python -m openagents_site.launcher.provision`.

Migrates, sets up the schedules, and sees to an administrator with an API token. Unlike the supervisor that runs it,
it needs Django, and ends before the first process starts. Its last line of output is JSON: user, created, token_created;
or, if it failed, one sentence that says why.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

import django

TO_MEND = 2  # exit status: the sentence says it all
LOCK = "openagents-boxes provision"  # two installations on one database prepare it one after the other
USER = "admin"
SCOPES = ("read", "box:control", "computer:control", "forge:write", "work:control")
TOKEN_NAME = "bin/up"  # noqa: S105 - the name under which the token is listed
PASSWORD_FILE = "admin_password"  # noqa: S105 - a file name
TOKEN_FILE = "admin_token"  # noqa: S105 - a file name
HEADER_FILE = "api_header"  # for curl -H @FILE, so that the token is in no process list


def main() -> int:
    """The exit status; what went wrong is on stderr, its last line for people."""
    try:
        _main()
    except Exception as error:
        traceback.print_exc()
        print(reason(error), file=sys.stderr)
        return TO_MEND if _is_known(error) else 1
    return 0


def _is_known(error: Exception) -> bool:
    """Whether it is said what to mend."""
    from django.core.exceptions import ImproperlyConfigured

    from openagents_site.database_errors import sentence

    return isinstance(error, ImproperlyConfigured) or sentence(error) is not None


def reason(error: Exception) -> str:
    """One line that says what to mend."""
    from django.core.exceptions import ImproperlyConfigured

    from openagents_site.database_errors import sentence, what_happened

    if isinstance(error, ImproperlyConfigured):
        return what_happened(error)
    return sentence(error) or f"{type(error).__name__}: {what_happened(error)}"


def _main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "openagents_site.settings")
    django.setup()
    from django.conf import settings
    from django.db import connection

    from base.locks import key_of

    refuse_contradictions()
    private = Path(settings.STATE_ROOT) / "private"
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", [key_of(LOCK)])  # held until this process ends
        print(json.dumps(prepare(private)))


def refuse_contradictions() -> None:
    """Settings that are good each by itself and not together: no process would start with them. Raises ImproperlyConfigured."""
    from django.core import checks
    from django.core.checks.registry import registry
    from django.core.exceptions import ImproperlyConfigured

    from openagents_site.commands import is_ours

    found = [
        message
        for check in registry.get_checks()
        if is_ours(check.__module__)
        for message in check(app_configs=None, databases=None)
    ]
    if wrong := [str(message.msg) for message in found if message.level >= checks.ERROR]:
        raise ImproperlyConfigured("; ".join(wrong))


def prepare(private: Path) -> dict[str, object]:
    """Bring the database up to date; secrets go to the folder `private`."""
    from django.core.management import call_command

    from openagents_site.launcher.migrating import migrate

    migrate()
    call_command("setup_schedules")
    return {"user": USER, "created": ensure_administrator(private), "token_created": ensure_token(private)}


def ensure_administrator(private: Path) -> bool:
    """See to the user; True if it was made now, with the password kept in `private`. An existing one is left as it is."""
    from accounts.models import User
    from base import state_root

    if User.objects.filter(username=USER).exists():
        return False
    password = state_root.private_secret(PASSWORD_FILE, private.parent)
    User.objects.create_superuser(USER, password=password)
    return True


def ensure_token(private: Path) -> bool:
    """See to a token that works, kept in `private` alone and as a header; True if it was made now."""
    from accounts.models import User
    from accounts.services import create_token

    kept = private / TOKEN_FILE
    plaintext = kept.read_text().strip() if kept.exists() else ""
    works = _works(plaintext)
    if not works:
        _, plaintext = create_token(User.objects.get(username=USER), name=TOKEN_NAME, scopes=SCOPES)
        _keep(kept, plaintext)
    _keep(private / HEADER_FILE, f"Authorization: Bearer {plaintext}")
    return not works


def _works(plaintext: str) -> bool:
    from knox.crypto import hash_token

    from accounts.models import ApiToken

    usable = ApiToken.objects.filter(digest=hash_token(plaintext), revoked_at=None, user__is_active=True)
    return bool(usable.exists())


def _keep(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".part")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
