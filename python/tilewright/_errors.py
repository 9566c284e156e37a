"""What goes wrong, by kind. Each is also the built-in exception that it resembles."""

from __future__ import annotations

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the time that typing takes to import
if TYPE_CHECKING:
    from typing import Any

    from ._reasons import Reason


class Error(Exception):
    """Any failure of the library. Its text says what is wrong, what was expected and what to do."""


class InvalidArgument(Error, ValueError):
    """The call makes no sense; fix it."""


class Unsupported(Error, NotImplementedError):
    """It makes sense, but nothing here can do it. `reasons` has all of them."""

    reasons: list[Reason]

    def __init__(self, text: str = "", reasons: list[Reason] | None = None) -> None:
        super().__init__(text)
        self.reasons = reasons or []


class OutOfMemory(Error, MemoryError):
    """Of the device or of the host."""


class DeviceError(Error, RuntimeError):
    """The driver or the device reported a failure."""


class ParseError(Error, ValueError):
    """A text or a file is not what it should be."""


class CheckFailed(Error, AssertionError):
    """The simulator's checks found something: `findings`."""

    findings: list[Any]

    def __init__(self, text: str = "", findings: list[Any] | None = None) -> None:
        super().__init__(text)
        self.findings = findings or []


class InternalError(Error, RuntimeError):
    """A defect in Tilewright; please report it."""


# By tw_status.
KINDS: tuple[type[Error], ...] = (
    Error, InvalidArgument, Unsupported, OutOfMemory, DeviceError, ParseError, CheckFailed, InternalError)


def from_status(status: int, text: str, note: str | None = None) -> Error:
    """The exception of a tw_status; called by the extension."""
    kind = KINDS[status] if 0 < status < len(KINDS) else InternalError
    return kind(f"{text}\n{note}" if note else text)
