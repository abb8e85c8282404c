"""Addresses below `/fleet/`."""

from __future__ import annotations

from django.urls import path

from openagents_site.fleet_page import views

app_name = "fleet"
urlpatterns = [
    path("", views.fleet, name="fleet"),
    path("live/", views.live, name="live"),
    path("usage/", views.usage, name="usage"),
    path("boxes/", views.create, name="create"),
    path("boxes/<uuid:box_id>/stop/", views.stop, name="stop"),
    path("boxes/<uuid:box_id>/runs/", views.start, name="start"),
    path("runs/<uuid:run_id>/cancel/", views.cancel, name="cancel"),
]
