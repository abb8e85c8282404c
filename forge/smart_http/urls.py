"""Addresses of Git, at the root of the site."""

from __future__ import annotations

from django.urls import re_path

from forge.smart_http.views import git

urlpatterns = [
    re_path(
        r"^(?P<owner>[^/]{1,64})/(?P<name>[^/]{1,64})\.git/(?P<rest>info/refs|git-upload-pack|git-receive-pack)\Z",
        git,
    )
]
