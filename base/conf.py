"""Typed settings: a dataclass says name, type, default, bounds and meaning once, for the environment, for tests and for docs.

An app's `conf.py` declares a frozen dataclass whose fields are made by `setting(...)`. `from_environment` reads the
process environment once at start and names every bad variable in one error; `resolve` builds the typed object from the
Django setting at call time, so that a test (or a shell) can change one value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")


@dataclass(frozen=True)
class Declaration:
    """What is known of one setting besides its type and default."""

    variable: str
    meaning: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False
    address: bool = False


def setting(
    default: T,
    variable: str,
    meaning: str,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    choices: tuple[str, ...] = (),
    secret: bool = False,
    address: bool = False,
) -> T:
    """A dataclass field read from the environment variable `variable`. Bounds are inclusive. `address`: of a web server."""
    declaration = Declaration(variable, meaning, minimum, maximum, choices, secret, address)
    field: T = (
        dataclasses.field(default_factory=lambda: default, metadata={"setting": declaration})
        if isinstance(default, list | tuple)
        else dataclasses.field(default=default, metadata={"setting": declaration})
    )
    return field


def declarations(settings_class: type) -> dict[str, Declaration]:
    """Field name -> declaration, in the order written."""
    return {field.name: field.metadata["setting"] for field in dataclasses.fields(settings_class)}


def from_environment(settings_class: type, env: environ.Env) -> dict[str, Any]:
    """The values that the environment sets, by field name; what it does not set is left to the default.

    Raises ImproperlyConfigured with one line for each bad variable, by name.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in dataclasses.fields(settings_class):
        declaration: Declaration = field.metadata["setting"]
        text = _given(env, declaration.variable)
        if text is None:
            continue
        try:
            if declaration.address:
                _check_address(text)
            values[field.name] = _checked(_parsed(text, _default(field)), declaration)
        except ValueError as error:
            problems.append(f"{declaration.variable} {error}")
    if problems:
        raise ImproperlyConfigured("; ".join(problems))
    return values


def resolve(settings_class: type[T], values: Mapping[str, Any]) -> T:
    """The typed settings object. Unknown names and values out of bounds are refused by name."""
    known = declarations(settings_class)
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ImproperlyConfigured(f"unknown settings: {', '.join(unknown)}")
    for name, value in values.items():
        try:
            _checked(value, known[name])
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} {error}") from None
    return settings_class(**values)


def _given(env: environ.Env, variable: str) -> str | None:
    text = cast("str | None", env.str(variable, default=None))
    return text.strip() if text is not None and text.strip() else None


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default is not MISSING else field.default_factory()  # type: ignore[misc]


def _parsed(text: str, default: Any) -> Any:
    """The text as a value of the default's type."""
    if isinstance(default, bool):
        if text.lower() not in {"1", "0", "true", "false", "yes", "no", "on", "off"}:
            raise ValueError(f"must be true or false, not {text!r}")
        return text.lower() in {"1", "true", "yes", "on"}
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"must be a whole number, not {text[:40]!r}") from None
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _checked(value: Any, declaration: Declaration) -> Any:
    if declaration.choices and value not in declaration.choices:
        raise ValueError(f"must be one of {', '.join(declaration.choices)}, not {value!r}")
    if isinstance(value, int) and not isinstance(value, bool):
        if declaration.minimum is not None and value < declaration.minimum:
            raise ValueError(f"must be at least {declaration.minimum}, not {value}")
        if declaration.maximum is not None and value > declaration.maximum:
            raise ValueError(f"must be at most {declaration.maximum}, not {value}")
    return value


def _check_address(text: str) -> None:
    """The text is not repeated: it may hold a password."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ValueError(
            "must be an http or https address with a host, such as https://host or http://host:8000"
        )
