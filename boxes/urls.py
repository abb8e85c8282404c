"""Addresses of the boxes' API, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from boxes.api import boxes, fanouts, leaks, reconciliation, usage

urlpatterns = [
    path("boxes", boxes.Boxes.as_view()),
    path("boxes/<str:ref>", boxes.BoxDetail.as_view()),
    path("boxes/<str:ref>/stop", boxes.StopBox.as_view()),
    path("boxes/<str:ref>/extend", boxes.ExtendBox.as_view()),
    path("boxes/<str:ref>/forget", boxes.ForgetBox.as_view()),
    path("boxes/<str:ref>/commands", boxes.BoxCommands.as_view()),
    path("fanouts", fanouts.Fanouts.as_view()),
    path("fanouts/<id:plan_id>", fanouts.FanoutDetail.as_view()),
    path("fanouts/<id:plan_id>/cancel", fanouts.CancelFanout.as_view()),
    path("leaks", leaks.Leaks.as_view()),
    path("leaks/<id:leak_id>/stop", leaks.StopLeak.as_view()),
    path("leaks/<id:leak_id>/adopt", leaks.AdoptLeak.as_view()),
    path("leaks/<id:leak_id>/dismiss", leaks.DismissLeak.as_view()),
    path("reconcile", reconciliation.Reconcile.as_view()),
    path("usage", usage.Usage.as_view()),
]
