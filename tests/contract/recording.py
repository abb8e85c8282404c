"""What of a tour is kept as examples, and whether what is kept is still what the server answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from openagents_site.api.examples import RECORDED
from tests.contract.exchange import Exchange

LONGEST_LIST = 2
SITE = "http://127.0.0.1:8000"
SECRETS = (
    (re.compile(r"oa_pat_[0-9a-f]{40,}"), "oa_pat_" + "0123456789abcdef" * 4),
    (re.compile(r"smct_[\w-]{20,}"), "smct_" + "A0b1C2d3" * 5),
    (re.compile(r"whsec_[\w+/=]{20,}"), "whsec_" + "QUJD" * 8),
    (re.compile(r'"poll_secret": "[^"]*"'), '"poll_secret": "' + "Zx9-" * 10 + '"'),
)


def examples(exchanges: dict[str, Exchange], url: str) -> dict[str, Any]:
    """The exchanges as they are kept: no secret, the usual address, short lists."""
    kept = {
        name: {"path": each.path, "body": each.body, "status": each.status, "answer": _short(each.answer)}
        for name, each in sorted(exchanges.items())
    }
    text = json.dumps(kept, indent=1, ensure_ascii=False).replace(url, SITE)
    for secret, shown in SECRETS:
        text = secret.sub(shown, text)
    found: dict[str, Any] = json.loads(text)
    return found


def write(kept: dict[str, Any]) -> None:
    RECORDED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value[:LONGEST_LIST]]
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return value


def differences(kept: Any, now: Any, place: str = "") -> Iterator[str]:
    """Where the two have other fields, or values of another type. Null and an empty list go with anything."""
    if kept is None or now is None:
        return
    if isinstance(kept, dict) and isinstance(now, dict):
        for name in kept.keys() ^ now.keys():
            yield f"{place}.{name} is in one of them only"
        for name in kept.keys() & now.keys():
            yield from differences(kept[name], now[name], f"{place}.{name}")
    elif isinstance(kept, list) and isinstance(now, list):
        if kept and now:
            yield from differences(kept[0], now[0], f"{place}[]")
    elif type(kept) is not type(now):
        yield f"{place} was {type(kept).__name__} and is {type(now).__name__}"
