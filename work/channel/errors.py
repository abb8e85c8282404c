"""Errors of the channel, and with which HTTP status it answers each."""

from __future__ import annotations

from collections.abc import Mapping

from work.errors import MachineError


class ChannelSuperseded(MachineError):
    """The machine has connected anew since; this connection is over."""

    code = "channel_superseded"


class ProtocolUnsupported(MachineError):
    """The connector speaks a version of the protocol that is not served; install a newer one."""

    code = "protocol_unsupported"


class FrameGap(MachineError):
    """A frame before this one has not come; connect again and send from there."""

    code = "frame_gap"


class FrameTooLarge(MachineError):
    """A frame has at most 65,536 bytes, and a request at most 524,288."""

    code = "frame_too_large"


class InvalidFrame(MachineError):
    """The frame is not one that is understood."""

    code = "invalid_frame"


class DelegationNotFound(MachineError):
    """The machine has no such delegation."""

    code = "delegation_not_found"


STATUS_BY_CODE: Mapping[str, int] = {
    ChannelSuperseded.code: 409,
    ProtocolUnsupported.code: 409,
    FrameGap.code: 409,
    FrameTooLarge.code: 413,
    InvalidFrame.code: 422,
    DelegationNotFound.code: 404,
}
