"""The root of every error that a caller may see."""

from __future__ import annotations

from typing import ClassVar


class CodedError(Exception):
    """An expected refusal or failure with a stable `code` for programs and a `detail` for people.

    `detail` never carries provider text, SQL, secrets or a trace. It defaults to the class's first docstring line.
    """

    code: str = "error"
    fields: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, code: str | None = None, detail: str | None = None) -> None:
        self.code = code or type(self).code
        self.detail = detail or (type(self).__doc__ or self.code).strip().splitlines()[0]
        super().__init__(f"{self.code}: {self.detail}")
