"""The bare address, which leads everybody to their own page, and the icon that browsers ask for by name."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import reverse

from accounts.models import User


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Staff to the staff site, owners to their fleet."""
    assert isinstance(request.user, User)
    return HttpResponseRedirect(reverse("admin:index" if request.user.is_staff else "fleet:fleet"))


def icon(request: HttpRequest) -> HttpResponse:
    """To the site's icon, for pages that name none."""
    return HttpResponseRedirect(static("site/icon.svg"))
