"""How the end of a command is told: an exit code, or the name of the signal it died by."""

from __future__ import annotations

import os
import signal

End = tuple["int | None", "str | None"]


def describe(status: int) -> End:
    """(exit code, signal name) of a wait status; one of them is None."""
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, signal_name(-code))


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"  # a real-time signal
