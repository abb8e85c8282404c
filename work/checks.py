"""What `manage.py check` says of the settings of jobs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from work.conf import ECHO, work_settings
from work.prices import PricesInvalid, parsed


@register()
def model_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Impossible pairs are said at start."""
    conf, found = work_settings(), list[CheckMessage]()
    if conf.model != ECHO and not conf.model_api_key and not conf.model_base_url:
        found.append(
            Error(
                f"WORK_MODEL is {conf.model!r}, and there is neither WORK_MODEL_API_KEY nor WORK_MODEL_BASE_URL",
                id="work.E001",
            )
        )
    if conf.model_base_url and not conf.model_base_url.startswith(("http://", "https://")):
        found.append(Error("WORK_MODEL_BASE_URL must be an http or https address", id="work.E002"))
    try:
        parsed(conf.model_prices)
    except PricesInvalid as error:
        found.append(Error(f"WORK_MODEL_PRICES: {error}", id="work.E003"))
    if conf.model_api_key and "model" not in settings.WORK:
        found.append(
            Warning(
                "WORK_MODEL_API_KEY is set and WORK_MODEL is not: the built-in echo answers, and no real model is asked",
                hint="name the model in WORK_MODEL, or set WORK_MODEL=echo if that is meant",
                id="work.W001",
            )
        )
    return found
