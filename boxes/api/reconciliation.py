"""A reconcile pass on request. For staff."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from base.api.schema import refusals
from base.api.views import ApiView
from boxes.errors import PROVIDER_ERRORS
from boxes.reconciler.requested import reconcile_within

LONGEST_WAIT_SECONDS = 25.0


class PassSerializer(serializers.Serializer[Any]):
    """What a pass did."""

    status = serializers.ChoiceField(choices=["done", "running", "skipped"])
    summary = serializers.DictField(help_text="Counts, and whether all was attended to; empty while it runs.")


class Reconcile(ApiView):
    staff_only = True
    staff_permission = "boxes.run_scheduleslot"

    @extend_schema(
        summary="Reconcile now",
        extensions=refusals(*PROVIDER_ERRORS),
        description="Answers with the summary, or 202 while the pass still runs after 25 seconds. `skipped`: another "
        "pass is at work, and does it all.",
        request=None,
        responses={200: PassSerializer, 202: PassSerializer},
    )
    def post(self, request: Request) -> Response:
        result = reconcile_within(LONGEST_WAIT_SECONDS)
        if result is None:
            return Response({"status": "running", "summary": {}}, status=202)
        status = "skipped" if result.skipped else "done"
        return Response({"status": status, "summary": result.as_dict()})
