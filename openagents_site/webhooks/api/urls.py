"""Addresses of webhooks below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from openagents_site.webhooks.api import views

urlpatterns = [
    path("webhooks", views.Webhooks.as_view()),
    path("webhooks/<id:webhook_id>", views.WebhookDetail.as_view()),
    path("webhooks/<id:webhook_id>/rotate", views.RotateSecret.as_view()),
    path("webhooks/<id:webhook_id>/test", views.TestWebhook.as_view()),
    path("webhooks/<id:webhook_id>/deliveries", views.Deliveries.as_view()),
    path("webhooks/<id:webhook_id>/deliveries/<id:delivery_id>/replay", views.ReplayDelivery.as_view()),
]
