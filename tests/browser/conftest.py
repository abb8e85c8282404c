"""A site, a browser, and pages that fail their test at the first error in the browser's console."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from accounts.models import User
from openagents_site.launcher.peers import CHECKOUT
from tests.browser.site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PICTURES = CHECKOUT / "artifacts" / "browser"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 320, "height": 640}
PATIENCE_MS = 150_000


@pytest.fixture(scope="module")
def site(django_db_setup: None, django_db_blocker: Any) -> Iterator[Site]:
    """One installation for all tests of a file."""
    with django_db_blocker.unblock(), Site() as made:
        yield made


@pytest.fixture(scope="module")
def chromium(site: Site) -> Iterator[Browser]:
    """The system's Chromium. Its driver runs an event loop in this thread, beside which the database may be used here."""
    from playwright.sync_api import sync_playwright

    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    program = next(found for name in CHROMIUM if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


Open = Callable[..., "Page"]


@pytest.fixture
def open_page(chromium: Browser, site: Site) -> Iterator[Open]:
    """`open_page(user, **options)` is a page of a browser of its own, signed in as that user; options are the context's.

    What goes wrong in it fails the test: an error in the console, a request that fails, an answer of 400 or more; except
    for addresses that contain `may_break`.
    """
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def make(user: User | None = None, *, may_break: str = "no address", **options: Any) -> Page:
        context = chromium.new_context(
            base_url=site.url, **({"viewport": {"width": 1200, "height": 800}} | options)
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        if user is not None:
            context.add_cookies(
                [{"name": settings.SESSION_COOKIE_NAME, "value": session_of(user), "url": site.url}]
            )

        def note(what: str, address: str) -> None:
            if may_break not in address:
                wrong.append(f"{what} {address}")

        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and note(said.text, said.location["url"]))
        page.on("requestfailed", lambda request: is_given_up(request) or note(request.failure, request.url))
        page.on("response", lambda answer: answer.status >= 400 and note(str(answer.status), answer.url))
        return page

    yield make
    for context in contexts:
        context.close()
    assert wrong == []


def is_given_up(request: Any) -> bool:
    """Whether the page itself ended the request, as a stream that nobody looks at any more."""
    return bool(request.failure == "net::ERR_ABORTED")


def session_of(user: User) -> str:
    """The key of a new session of the user."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    assert session.session_key
    return session.session_key


def picture(page: Page, name: str) -> Path:
    """Keep a picture of what the page shows now."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    file = PICTURES / f"{name}.png"
    page.screenshot(path=file)
    return file
