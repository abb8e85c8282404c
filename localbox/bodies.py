"""Request bodies, parsed and checked. Each function raises ApiError 400 with the code of the field at fault.

Fields that the API does not know are ignored, as a client of a later version may send them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .dialects import Dialect
from .errors import ApiError, bad_request
from .sizes import SIZES
from .webhooks.targets import RefusedTargetError, parse

Body = Mapping[str, Any]

DEFAULT_TTL_SECONDS = 3_600
MAXIMUM_TTL_SECONDS = 2_592_000
MAXIMUM_NAME = 120
MAXIMUM_SCRIPT_BYTES = 65_536
MAXIMUM_ENV_KEYS = 100
MAXIMUM_ENV_BYTES = 65_536
MAXIMUM_TIMEOUT_SECONDS = 600
DEFAULT_TIMEOUT_SECONDS = 30
ENVIRONMENT = "base"  # the only named environment there is

RESERVED_ENV = frozenset(
    {"ASCII_TOKEN", "ASCII_API_URL", "AGENT_ID", "PRODUCT_MODE", "ENVIRONMENT_ID", "BOX_ID"}
    | {"SERVICE_PREVIEW_TOKEN", "BOX_CLI_TOKEN"}
)

_ENV_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


class Omitted:
    """What stands for a field that was not sent, where null means something else."""


OMITTED: Final = Omitted()

Ttl = int | None | Omitted


@dataclass(frozen=True)
class CreateBody:
    size: str
    ttl_seconds: int | None
    env: dict[str, str]
    no_env: bool
    setup_script: str | None


@dataclass(frozen=True)
class RestartBody:
    """A resume or a fork: None and OMITTED keep what there was."""

    size: str | None
    ttl_seconds: Ttl
    env: dict[str, str] | None
    no_env: bool


@dataclass(frozen=True)
class PatchBody:
    name: str | None
    ttl_seconds: Ttl
    subdomain: str | None


@dataclass(frozen=True)
class CommandBody:
    command: str
    cwd: str | None
    timeout_seconds: int
    detached: bool


@dataclass(frozen=True)
class FileBody:
    path: str
    content: bytes
    encoding: Literal["utf8", "base64"]


@dataclass(frozen=True)
class WebhookBody:
    """Fields not sent are OMITTED; `events` are in the words of the first dialect."""

    name: str | Omitted | None
    url: str | Omitted
    events: tuple[str, ...] | Omitted


def create(body: Body) -> CreateBody:
    _environment(body)
    if body.get("from") is not None:
        raise ApiError(404, "snapshot_not_found", "This provider keeps no named snapshots to start from.")
    ttl = _ttl(body)
    return CreateBody(
        size=_size(body) or "default",
        ttl_seconds=DEFAULT_TTL_SECONDS if isinstance(ttl, Omitted) else ttl,
        env=_env(body) or {},
        no_env=_boolean(body, "noEnv"),
        setup_script=_setup_script(body),
    )


def restart(body: Body) -> RestartBody:
    _environment(body)
    return RestartBody(
        size=_size(body), ttl_seconds=_ttl(body), env=_env(body), no_env=_boolean(body, "noEnv")
    )


def patch(body: Body) -> PatchBody:
    known = PatchBody(name=_name(body), ttl_seconds=_ttl(body), subdomain=_subdomain(body))
    if known == PatchBody(name=None, ttl_seconds=OMITTED, subdomain=None):
        raise bad_request("no_changes", "Send at least one of name, ttlSeconds and subdomain.")
    return known


def force(body: Body) -> bool:
    return _boolean(body, "force")


def command(body: Body) -> CommandBody:
    timeout = body.get("timeoutSeconds", DEFAULT_TIMEOUT_SECONDS)
    if not _is_integer(timeout) or not 1 <= timeout <= MAXIMUM_TIMEOUT_SECONDS:
        reason = f"timeoutSeconds must be a whole number from 1 to {MAXIMUM_TIMEOUT_SECONDS}."
        raise bad_request("invalid_timeout", reason)
    text = body.get("command")
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise bad_request("invalid_command", "command must be a text that is not blank and holds no NUL.")
    cwd = body.get("cwd")
    if cwd is not None and (not isinstance(cwd, str) or not cwd or "\0" in cwd):
        raise bad_request("invalid_cwd", "cwd must be a path relative to the work directory.")
    detached = _boolean(body, "detached")
    return CommandBody(command=text, cwd=cwd, timeout_seconds=timeout, detached=detached)


def file(body: Body) -> FileBody:
    chosen = encoding(body.get("encoding"))
    content = body.get("content")
    if not isinstance(content, str):
        raise bad_request("invalid_content", "content must be a text.")
    return FileBody(path=path(body.get("path")), content=_decoded(content, chosen), encoding=chosen)


def path(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise bad_request("invalid_path", "path must be a text that is not empty and holds no NUL.")
    return value


def encoding(value: object) -> Literal["utf8", "base64"]:
    if value is None or value == "utf8":
        return "utf8"
    if value == "base64":
        return "base64"
    raise bad_request("invalid_encoding", "encoding must be utf8 or base64.")


def new_webhook(body: Body, dialect: Dialect, *, loopback: bool) -> WebhookBody:
    known = changed_webhook(body, dialect, loopback=loopback, empty=True)
    if isinstance(known.url, Omitted):
        raise bad_request("invalid_url", "url is missing.")
    if isinstance(known.events, Omitted):
        raise bad_request("invalid_events", "events is missing.")
    return known


def changed_webhook(body: Body, dialect: Dialect, *, loopback: bool, empty: bool = False) -> WebhookBody:
    known = WebhookBody(
        name=_webhook_name(body["name"]) if "name" in body else OMITTED,
        url=_webhook_url(body["url"], loopback=loopback) if "url" in body else OMITTED,
        events=_webhook_events(body["events"], dialect) if "events" in body else OMITTED,
    )
    if not empty and known == WebhookBody(name=OMITTED, url=OMITTED, events=OMITTED):
        raise bad_request("no_changes", "Send at least one of name, url and events.")
    return known


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _boolean(body: Body, name: str) -> bool:
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise bad_request("invalid_request", f"{name} must be true or false.")
    return value


def _size(body: Body) -> str | None:
    size = body.get("type")
    if size is not None and (not isinstance(size, str) or size not in SIZES):
        raise bad_request("invalid_type", f"type must be one of {', '.join(SIZES)}.")
    return size


def _ttl(body: Body) -> Ttl:
    if "ttlSeconds" not in body:
        return OMITTED
    ttl = body["ttlSeconds"]
    if ttl is None or ttl == "infinite":
        return None
    if not _is_integer(ttl) or not 1 <= ttl <= MAXIMUM_TTL_SECONDS:
        raise bad_request(
            "invalid_ttl", f"ttlSeconds must be null or a whole number from 1 to {MAXIMUM_TTL_SECONDS}."
        )
    return int(ttl)


def _env(body: Body) -> dict[str, str] | None:
    env = body.get("env")
    if env is None:
        return None
    if not isinstance(env, dict) or len(env) > MAXIMUM_ENV_KEYS:
        raise bad_request("invalid_env", f"env must be an object of at most {MAXIMUM_ENV_KEYS} variables.")
    for key, value in env.items():
        _check_variable(key, value)
    if sum(len(key.encode()) + len(value.encode()) for key, value in env.items()) > MAXIMUM_ENV_BYTES:
        raise bad_request("invalid_env", f"env is larger than {MAXIMUM_ENV_BYTES} bytes.")
    return env


def _check_variable(key: str, value: object) -> None:
    if not _ENV_KEY.fullmatch(key):
        raise bad_request("invalid_env", f"{key[:128]!r} is not a name for a variable.")
    if key in RESERVED_ENV:
        raise bad_request("invalid_env", f"{key} is reserved.")
    if not isinstance(value, str) or "\0" in value:
        raise bad_request("invalid_env", f"The value of {key} must be a text without NUL.")


def _environment(body: Body) -> None:
    environment = body.get("environment")
    if environment is not None and environment != ENVIRONMENT:
        raise bad_request("unknown_environment", f"There is one environment, {ENVIRONMENT!r}.")


def _setup_script(body: Body) -> str | None:
    script = body.get("setupScript")
    if script is None:
        return None
    if not isinstance(script, str) or "\0" in script or len(script.encode()) > MAXIMUM_SCRIPT_BYTES:
        text = f"setupScript must be a text of at most {MAXIMUM_SCRIPT_BYTES} bytes."
        raise bad_request("invalid_setup_script", text)
    return script or None


def _name(body: Body) -> str | None:
    name = body.get("name")
    if name is None:
        return None
    if not isinstance(name, str) or not name.strip():
        raise bad_request("invalid_name", "name must be a text that is not blank.")
    return name[:MAXIMUM_NAME]


def _subdomain(body: Body) -> str | None:
    subdomain = body.get("subdomain")
    if subdomain is None:
        return None
    fits = isinstance(subdomain, str) and 3 <= len(subdomain) <= 40 and "--" not in subdomain
    if not fits or not _SUBDOMAIN.fullmatch(subdomain):
        raise bad_request(
            "invalid_subdomain", "subdomain must be 3 to 40 of a-z, 0-9 and single inner hyphens."
        )
    return str(subdomain)


def _decoded(content: str, encoding: str) -> bytes:
    if encoding == "utf8":
        return content.encode()
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("invalid_content", "content is not base64.") from None


def _webhook_name(name: object) -> str | None:
    if name is not None and (not isinstance(name, str) or not 1 <= len(name) <= 100):
        raise bad_request("invalid_name", "name must be null or a text of 1 to 100 characters.")
    return name


def _webhook_url(url: object, *, loopback: bool) -> str:
    if not isinstance(url, str):
        raise bad_request("invalid_url", "url must be a text.")
    try:
        parse(url, loopback=loopback)
    except RefusedTargetError as refusal:
        raise bad_request("invalid_url", str(refusal)) from None
    return url


def _webhook_events(events: object, dialect: Dialect) -> tuple[str, ...]:
    known = dialect.event_types()
    if not isinstance(events, list) or not events or not all(isinstance(event, str) for event in events):
        raise bad_request("invalid_events", "events must be a list of at least one event.")
    unknown = [event for event in events if event not in known]
    if unknown:
        raise bad_request("invalid_events", f"Events are {', '.join(known)}; not {unknown[0][:60]!r}.")
    return tuple(dict.fromkeys(known[event] for event in events))
