"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from boxes.api.webhooks import provider_webhook
from forge.smart_http.urls import urlpatterns as git_addresses
from openagents_site.front import home, icon
from openagents_site.health import healthz, readyz
from openagents_site.metrics.page import metrics
from work.machines.pages import pair

urlpatterns = [
    path("", home),
    path("favicon.ico", icon),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("api/v1/", include("openagents_site.api.urls")),
    path("machine/v1/", include("work.channel.urls")),
    path("fleet/", include("openagents_site.fleet_page.urls")),
    path("pair/", pair, name="pair"),
    path("hooks/box", provider_webhook),
    *git_addresses,
    path("accounts/", include("openagents_site.sign_in.urls")),
    path("admin/", admin.site.urls),
]
handler403 = "openagents_site.error_pages.refused"
handler404 = "openagents_site.error_pages.not_found"
handler500 = "openagents_site.error_pages.failed"
