"""Addresses of the runs' API, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from runs import api

urlpatterns = [
    path("runs", api.Runs.as_view()),
    path("runs/<id:run_id>", api.RunDetail.as_view()),
    path("runs/<id:run_id>/output", api.RunOutput.as_view()),
    path("runs/<id:run_id>/log", api.RunLog.as_view()),
    path("runs/<id:run_id>/log/download", api.RunLogDownload.as_view()),
    path("runs/<id:run_id>/stream", api.RunStream.as_view()),
    path("runs/<id:run_id>/cancel", api.CancelRun.as_view()),
]
