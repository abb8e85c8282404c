"""Addresses of pairing and machines, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from work.machines import api

urlpatterns = [
    path("pairings", api.Pairings.as_view()),
    path("pairings/approve", api.ApprovePairing.as_view()),
    path("pairings/<id:pairing_id>", api.PairingDetail.as_view()),
    path("machines", api.Machines.as_view()),
    path("machines/<id:machine_id>", api.MachineDetail.as_view()),
    path("machines/<id:machine_id>/probe", api.ProbeMachine.as_view()),
]
