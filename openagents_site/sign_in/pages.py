"""The pages of signing in, without scripts and with a policy that allows none."""

from __future__ import annotations

import math
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from openagents_site.sign_in.conf import sign_in_settings


def page(request: HttpRequest, name: str, values: dict[str, Any], status: int = 200) -> HttpResponse:
    """The page `sign_in/<name>.html`, never cached."""
    return guarded(render(request, f"sign_in/{name}.html", values, status=status))


def refusal(request: HttpRequest, said: str, status: int) -> HttpResponse:
    """A page that says why nobody was signed in, with the way back."""
    return page(request, "refused", {"said": said}, status)


def locked_page(request: HttpRequest, seconds: int) -> HttpResponse:
    """429: too many passwords were tried. `seconds` until the next try is let through."""
    minutes = math.ceil(seconds / 60)
    when = f"{seconds} seconds" if seconds < 120 else f"{minutes} minutes"
    response = refusal(request, f"Too many passwords were tried. Try again in {when}.", 429)
    response["Retry-After"] = str(seconds)
    return response


def guarded(response: HttpResponse) -> HttpResponse:
    """The answer with the headers that every page of signing in has."""
    conf = sign_in_settings()
    targets = f"'self' {conf.github_url}" if conf.by_github else "'self'"  # a form's redirect counts too
    response["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'self'; img-src 'self'; form-action {targets}; base-uri 'none'; frame-ancestors 'none'"
    )
    response["Referrer-Policy"] = "same-origin"
    response["Cache-Control"] = "no-store"
    return response
