"""Settings of signing in, read at call time from `settings.SIGN_IN`."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from base.conf import resolve, setting

GITHUB = "https://github.com"


@dataclass(frozen=True)
class SignInSettings:
    """The `SIGN_IN` family."""

    github_client_id: str = setting(
        "",
        "GITHUB_CLIENT_ID",
        "Client id of the OAuth app by which owners sign in. Empty: nobody signs in by GitHub.",
    )
    github_client_secret: str = setting(
        "", "GITHUB_CLIENT_SECRET", "Its client secret. Set both, or neither.", secret=True
    )
    github_url: str = setting(
        GITHUB,
        "GITHUB_URL",
        "Where GitHub is: another address is a GitHub Enterprise Server's.",
        address=True,
    )
    github_logins: tuple[str, ...] = setting(
        (),
        "GITHUB_LOGINS",
        "Comma-separated GitHub logins that may sign in. Empty: everybody who is on GitHub.",
    )
    password_failures: int = setting(
        5,
        "SIGN_IN_PASSWORD_FAILURES",
        "Wrong passwords for one user name from one address after which it is locked for that address.",
        minimum=1,
        maximum=1000,
    )
    lock_minutes: int = setting(
        15, "SIGN_IN_LOCK_MINUTES", "How long it stays locked.", minimum=1, maximum=10_080
    )
    passwords_per_minute: int = setting(
        30,
        "SIGN_IN_PASSWORDS_PER_MINUTE",
        "Passwords that may be tried from one address in a minute, for whichever user names.",
        minimum=1,
    )

    @property
    def by_github(self) -> bool:
        """Whether GitHub is configured, wholly."""
        return bool(self.github_client_id and self.github_client_secret)

    def may_sign_in(self, login: str) -> bool:
        """Whether this GitHub login is let in."""
        return not self.github_logins or login.lower() in {name.lower() for name in self.github_logins}


def sign_in_settings() -> SignInSettings:
    """The settings in force now. Raises ImproperlyConfigured for an unknown name or a value out of bounds."""
    return resolve(SignInSettings, settings.SIGN_IN)
