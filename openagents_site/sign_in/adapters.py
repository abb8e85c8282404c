"""What django-allauth asks us: where to go after signing in, which providers there are, and who a GitHub user is."""

from __future__ import annotations

from typing import Any, NoReturn

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.utils import perform_login
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthError, AuthProcess
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from accounts.models import User
from accounts.services import upsert_github_user
from openagents_site.sign_in.conf import SignInSettings, sign_in_settings
from openagents_site.sign_in.pages import refusal

PROVIDER = "github"
OWNERS_PAGE = "/fleet/"
log = structlog.get_logger(__name__)


class AccountAdapter(DefaultAccountAdapter):
    """Nobody signs up by a password, and a sign-in ends on our own host only."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_safe_url(self, url: str | None) -> bool:
        """Whether `next` leads to the host that was asked; another host of ours is refused as well."""
        request = context.request
        return url_has_allowed_host_and_scheme(
            url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
        )

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Staff go to the staff pages, owners to their fleet."""
        staff = isinstance(request.user, User) and request.user.is_staff
        return reverse("admin:index") if staff else OWNERS_PAGE

    def get_logout_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account_login")

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """No "signed in as": the page that follows says so itself."""


class GitHubAdapter(DefaultSocialAccountAdapter):
    """A GitHub sign-in is the user with that GitHub id. Nothing else is compared, least of all an e-mail address."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """The one OAuth app that the settings name; what is in allauth's own table is not asked."""
        conf = sign_in_settings()
        if not conf.by_github or provider not in {None, PROVIDER}:
            return []
        if client_id not in {None, conf.github_client_id}:
            return []
        return [_app(conf)]

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> NoReturn:
        """Sign in whom GitHub named, or say why not; allauth's own tables of accounts stay empty."""
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            raise ImmediateHttpResponse(refusal(request, "Accounts are not connected here.", 400))
        user = _user_of(request, sociallogin.account.extra_data)
        if request.user.is_authenticated and request.user.pk != user.pk:
            DefaultAccountAdapter(request).logout(request)
        raise ImmediateHttpResponse(
            perform_login(request, user, redirect_url=sociallogin.get_redirect_url(request))
        )

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> NoReturn:
        """Said in our words; what GitHub said is in the log."""
        if error == AuthError.CANCELLED:
            raise ImmediateHttpResponse(refusal(request, "You said no at GitHub: nobody was signed in.", 403))
        log.warning("github_sign_in_failed", reason=str(error), error=type(exception).__name__)
        said = "GitHub could not be asked who you are, or the attempt was too old. Please try again."
        raise ImmediateHttpResponse(refusal(request, said, 401))


def _app(conf: SignInSettings) -> SocialApp:
    return SocialApp(
        provider=PROVIDER, name="GitHub", client_id=conf.github_client_id, secret=conf.github_client_secret
    )


def _user_of(request: HttpRequest, told: dict[str, Any]) -> User:
    """The user with the identity that GitHub told, created or brought up to date. Raises ImmediateHttpResponse."""
    github_id, login = told.get("id"), told.get("login")
    if type(github_id) is not int or not isinstance(login, str) or not login:
        raise ImmediateHttpResponse(refusal(request, "GitHub did not say who you are.", 401))
    if not sign_in_settings().may_sign_in(login):
        raise ImmediateHttpResponse(refusal(request, "This GitHub account may not sign in here.", 403))
    user = upsert_github_user(
        github_id=github_id,
        github_login=login[:255],
        github_avatar_url=str(told.get("avatar_url") or "")[:500],
    )
    if not user.is_active:
        raise ImmediateHttpResponse(
            refusal(request, "This account is closed. Ask whoever runs the site.", 403)
        )
    return user
