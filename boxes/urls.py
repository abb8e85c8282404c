"""Addresses of the boxes' API, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from boxes import api

urlpatterns = [
    path("boxes", api.Boxes.as_view()),
    path("boxes/<str:ref>", api.BoxDetail.as_view()),
    path("boxes/<str:ref>/stop", api.StopBox.as_view()),
    path("boxes/<str:ref>/extend", api.ExtendBox.as_view()),
    path("boxes/<str:ref>/commands", api.BoxCommands.as_view()),
]
