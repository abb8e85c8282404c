"""Errors of machines beyond pairing, and with which HTTP status the API answers each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from work.errors import MachineError


class MachinesDisabled(MachineError):
    """Paired machines are switched off on this installation."""

    code = "computer_controller_disabled"


class MachineOffline(MachineError):
    """The machine is not connected."""

    code = "machine_offline"


class MachineTimeout(MachineError):
    """The machine is connected and did not answer in time."""

    code = "machine_timeout"


class MachineInvalid(MachineError):
    """The change of the machine is not valid."""

    code = "invalid_machine"
    fields: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        super().__init__(detail="; ".join(f"{name}: {texts[0]}" for name, texts in fields.items()))
        self.fields = dict(fields)  # type: ignore[misc]  # one error, its own fields


STATUS_BY_CODE: Mapping[str, int] = {
    MachinesDisabled.code: 403,
    MachineOffline.code: 409,
    MachineTimeout.code: 504,
    MachineInvalid.code: 422,
}
