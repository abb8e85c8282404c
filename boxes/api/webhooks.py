"""`/hooks/box`: where the provider delivers its webhooks."""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.views.decorators.csrf import csrf_exempt

from base.api.errors import not_found
from boxes import webhooks
from boxes.conf import box_api
from boxes.webhooks import Untrusted

log = structlog.get_logger(__name__)
LONGEST_BODY_BYTES = 64 << 10


@csrf_exempt
def provider_webhook(request: HttpRequest) -> HttpResponse:
    """Take a delivery: 204, also for one that was taken before. 404 while no secret is set; 401 for any that is not
    signed with it or not from now, without a word why; 413 for a body over 64 KiB."""
    secret = box_api().webhook_secret
    if not secret:
        return not_found(request)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    body = request.read(LONGEST_BODY_BYTES + 1)
    if len(body) > LONGEST_BODY_BYTES:
        return HttpResponse(status=413)
    try:
        delivery = webhooks.verified(request.headers, body, secret=secret, now=datetime.now(UTC))
    except Untrusted:
        log.warning("delivery_not_trusted")
        return HttpResponse(status=401)
    webhooks.accept(delivery)
    return HttpResponse(status=204)
