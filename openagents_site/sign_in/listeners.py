"""Every sign-in and sign-out is a line in the log: who, from where."""

from __future__ import annotations

from typing import Any

import structlog
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from accounts.models import User
from openagents_site.sign_in.throttling import client_address

log = structlog.get_logger(__name__)


@receiver(user_logged_in, dispatch_uid="sign_in.signed_in")
def signed_in(sender: Any, request: HttpRequest | None, user: User, **_: Any) -> None:
    log.info("signed_in", user=str(user.pk), address=_from(request))


@receiver(user_logged_out, dispatch_uid="sign_in.signed_out")
def signed_out(sender: Any, request: HttpRequest | None, user: User | None, **_: Any) -> None:
    if user is not None:
        log.info("signed_out", user=str(user.pk), address=_from(request))


def _from(request: HttpRequest | None) -> str | None:
    return client_address(request) if request is not None else None
