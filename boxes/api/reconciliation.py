"""A reconcile pass on request. For staff."""

from __future__ import annotations

import threading
from typing import Any

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from base.api.schema import refusals
from boxes.errors import PROVIDER_ERRORS
from boxes.reconciler import PassResult, reconcile

LONGEST_WAIT_SECONDS = 25.0


class PassSerializer(serializers.Serializer[Any]):
    """What a pass did."""

    status = serializers.ChoiceField(choices=["done", "running", "skipped"])
    summary = serializers.DictField(
        child=serializers.IntegerField(), help_text="Counts; empty while it runs."
    )


class _Pass(threading.Thread):
    """A pass in a thread of its own, with a connection of its own: it goes on when nobody waits any more."""

    def __init__(self) -> None:
        super().__init__(name="requested-pass", daemon=True)
        self.result: PassResult | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = reconcile()
        except Exception as error:
            self.error = error
        finally:
            connection.close()


class Reconcile(APIView):
    staff_only = True

    @extend_schema(
        summary="Reconcile now",
        extensions=refusals(*PROVIDER_ERRORS),
        description="Answers with the summary, or 202 while the pass still runs after 25 seconds. `skipped`: another "
        "pass is at work, and does it all.",
        request=None,
        responses={200: PassSerializer, 202: PassSerializer},
    )
    def post(self, request: Request) -> Response:
        work = _Pass()
        connection.close()  # nothing is held while waiting
        work.start()
        work.join(LONGEST_WAIT_SECONDS)
        if work.is_alive():
            return Response({"status": "running", "summary": {}}, status=202)
        if work.error is not None:
            raise work.error
        assert work.result is not None
        status = "skipped" if work.result.skipped else "done"
        return Response({"status": status, "summary": work.result.as_dict()})
