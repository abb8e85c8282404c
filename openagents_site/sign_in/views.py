"""`/accounts/`: signing in and out. Thin: allauth signs in, axes counts, the adapters decide."""

from __future__ import annotations

from typing import Any

from allauth.account.views import LoginView, LogoutView
from allauth.socialaccount.providers.github.views import oauth2_callback, oauth2_login
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from openagents_site.sign_in.conf import sign_in_settings
from openagents_site.sign_in.pages import guarded, refusal


class SignIn(LoginView):
    """The form for a password, and the button for GitHub where that is configured."""

    template_name = "sign_in/sign_in.html"

    def get_context_data(self, **values: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**values)
        return context | {"by_github": sign_in_settings().by_github, "next": self.get_next_url()}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        assert isinstance(response, HttpResponse)
        return guarded(response)


class SignOut(LogoutView):
    """Asks by GET, signs out by POST."""

    template_name = "sign_in/sign_out.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        assert isinstance(response, HttpResponse)
        return guarded(response)


def inactive(request: HttpRequest) -> HttpResponse:
    """Where allauth sends somebody whose account was closed between password and session."""
    return refusal(request, "This account is closed. Ask whoever runs the site.", 403)


@never_cache
@require_POST
def to_github(request: HttpRequest) -> HttpResponse:
    """Off to GitHub, which comes back to `from_github`. 404 where it is not configured."""
    _configured()
    answer: HttpResponse = oauth2_login(request)
    return answer


@never_cache
@require_GET
def from_github(request: HttpRequest) -> HttpResponse:
    """Back from GitHub, with a code for who it was. 404 where it is not configured."""
    _configured()
    answer: HttpResponse = oauth2_callback(request)
    return answer


def _configured() -> None:
    if not sign_in_settings().by_github:
        raise Http404
