"""What can go wrong, in words for the person at the computer."""

from __future__ import annotations


class ConnectorError(Exception):
    """Something that ends the command; its text is for a person, `exit_code` for a script."""

    exit_code = 1


class NotPaired(ConnectorError):
    """This computer is not paired."""

    exit_code = 2


class NotLetIn(ConnectorError):
    """The server does not know this computer any more."""

    exit_code = 3


class Superseded(ConnectorError):
    """Another connector has taken this computer's place."""

    exit_code = 4


class AlreadyRunning(ConnectorError):
    """A connector runs already."""

    exit_code = 5


class Unreachable(Exception):
    """The server cannot be reached or is not well; to be tried again, after `seconds` if it said so."""

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        super().__init__(reason)
        self.seconds = seconds


class Refused(Exception):
    """The server refuses a request for what it says."""

    def __init__(self, status: int, code: str, detail: str = "") -> None:
        super().__init__(f"{code} ({status})")
        self.status, self.code, self.detail = status, code, detail
