"""Errors of webhooks, and with which HTTP status the API answers each."""

from __future__ import annotations

from base.errors import CodedError


class WebhookNotFound(CodedError):
    """There is no such webhook."""

    code = "webhook_not_found"


class DeliveryNotFound(CodedError):
    """There is no such delivery of this webhook."""

    code = "webhook_delivery_not_found"


class TooManyWebhooks(CodedError):
    """You have as many webhooks as you may have."""

    code = "too_many_webhooks"


class InvalidTarget(CodedError):
    """The address is not one that a webhook may go to."""

    code = "invalid_webhook_url"


class WebhookDisabled(CodedError):
    """The webhook is switched off."""

    code = "webhook_disabled"


STATUSES = {
    WebhookNotFound.code: 404,
    DeliveryNotFound.code: 404,
    TooManyWebhooks.code: 409,
    InvalidTarget.code: 422,
    WebhookDisabled.code: 409,
}
