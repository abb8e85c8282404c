"""The forge's addresses, for tests of its API."""

from __future__ import annotations

from forge.models import Repository

API = "/api/v1"


def code_of(response) -> str:
    return response.json()["error"]["code"]


def address(repository: Repository, *rest: object) -> str:
    return "/".join([f"{API}/repositories/{repository.pk}", *map(str, rest)])
