"""What people see where there is no page for them: in the style of the others, and asking nothing of the database."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from base.api import errors

PLAIN = "<!doctype html><title>{title}</title><h1>{title}</h1><p>{said}</p>"


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404."""
    return _page(404, "There is nothing here", "The address may be mistyped, or what was here is gone.")


def refused(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403."""
    return _page(
        403, "This is not for you", "The account that you are signed in with may not see or do this."
    )


def form_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form that did not come from a page of this site, or from one that was open for too long."""
    return _page(403, "This form cannot be taken", "Go back, load the page anew and send it again.")


def failed(request: HttpRequest) -> HttpResponse:
    """500: for programs in the API's shape; without a word of what happened, which is in the log."""
    if "text/html" not in request.headers.get("Accept", ""):
        return errors.server_error(request)
    return _page(500, "Something went wrong", "It is in the log. What you did may or may not have been done.")


def _page(status: int, title: str, said: str) -> HttpResponse:
    """Rendered without the request: who is signed in would be asked of the database."""
    words = {"title": title, "said": said}
    try:
        text: str = render_to_string("error.html", words)
    except ValueError:  # the static files have not been collected: there is no style to name
        text = PLAIN.format(**words)
    return HttpResponse(text, status=status)
