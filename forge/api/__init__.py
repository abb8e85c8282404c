"""The forge over HTTP. Views check the body, call one service, and show the row."""

from __future__ import annotations

from base.api.errors import register_statuses
from forge.errors import PUBLIC_CODE, STATUS_BY_CODE

register_statuses(
    STATUS_BY_CODE, PUBLIC_CODE, {"invalid_repository_name": "This is no name for a repository."}
)
