"""The pages that owners see: never stored on the way, and under a policy that lets the browser run nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers

SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; {scripts}form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_SCRIPTS = "script-src 'self'; connect-src 'self'; "


def page(
    request: HttpRequest,
    template: str,
    values: Mapping[str, Any],
    *,
    status: int = 200,
    scripts: bool = False,
) -> HttpResponse:
    """The page as an answer. `scripts`: whether it may run the site's own scripts, and these ask the site."""
    response = render(request, template, dict(values), status=status)
    response["Content-Security-Policy"] = SECURITY_POLICY.format(scripts=_SCRIPTS if scripts else "")
    # What is in an address may be secret; the CSRF check needs the referrer at home.
    response["Referrer-Policy"] = "same-origin"
    add_never_cache_headers(response)
    return response
