"""Addresses of jobs and incidents, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from work.api import incidents, jobs

urlpatterns = [
    path("jobs", jobs.Jobs.as_view()),
    path("jobs/<id:job_id>", jobs.JobDetail.as_view()),
    path("jobs/<id:job_id>/steps", jobs.JobSteps.as_view()),
    path("jobs/<id:job_id>/cancel", jobs.CancelJob.as_view()),
    path("incidents", incidents.Incidents.as_view()),
    path("incidents/<id:incident_id>", incidents.IncidentDetail.as_view()),
]
