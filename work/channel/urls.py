"""Addresses of the channel, below `/machine/v1/`."""

from __future__ import annotations

from django.urls import path

from work.channel import api

urlpatterns = [
    path("connect", api.Connect.as_view()),
    path("poll", api.Poll.as_view()),
    path("frames", api.Tell.as_view()),
    path("disconnect", api.Disconnect.as_view()),
    path("unpair", api.Unpair.as_view()),
]
