"""Every address below `/accounts/`. The names are those that django-allauth looks for."""

from __future__ import annotations

from django.urls import path

from openagents_site.sign_in import views

urlpatterns = [
    path("login/", views.SignIn.as_view(), name="account_login"),
    path("logout/", views.SignOut.as_view(), name="account_logout"),
    path("closed/", views.inactive, name="account_inactive"),
    path("github/login/", views.to_github, name="github_login"),
    path("github/login/callback/", views.from_github, name="github_callback"),
]
