"""How the staff site looks. Read by the settings, so nothing here imports a model."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static

Label = tuple[str, str]

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "OpenAgents Boxes",
    "SITE_HEADER": "OpenAgents Boxes",
    "SITE_SUBHEADER": "Staff",
    "SITE_SYMBOL": "deployed_code",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("site/icon.svg")},
    ],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "ENVIRONMENT": "openagents_site.staff.unfold.environment",
    "DASHBOARD_CALLBACK": "openagents_site.dashboard.callback.dashboard",
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": False,
        "navigation": "openagents_site.staff.sidebar.navigation",
    },
    "COLORS": {
        "primary": {
            "50": "oklch(97.7% .013 236.62)",
            "100": "oklch(95.1% .026 236.824)",
            "200": "oklch(90.1% .058 230.902)",
            "300": "oklch(82.8% .111 230.318)",
            "400": "oklch(74.6% .16 232.661)",
            "500": "oklch(68.5% .169 237.323)",
            "600": "oklch(50% .134 242.749)",  # dark enough to be read on white, also as small text
            "700": "oklch(44.3% .11 240.79)",
            "800": "oklch(39.1% .09 240.876)",
            "900": "oklch(33% .07 241)",
            "950": "oklch(29.3% .066 243.157)",
        },
    },
}


def environment(request: HttpRequest) -> Label:
    """Which installation these pages belong to, so that nobody takes one for another: its name and the colour of its label."""
    if settings.DEBUG:
        return settings.ENVIRONMENT_LABEL or "debug", "warning"
    if settings.ENVIRONMENT_LABEL:
        return settings.ENVIRONMENT_LABEL, "info"
    return urlsplit(settings.PUBLIC_BASE_URL).netloc, "info"
