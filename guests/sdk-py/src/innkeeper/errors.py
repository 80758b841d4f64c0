"""The errors of guests and of their reads."""

from __future__ import annotations


class BadInput(Exception):
    """The primary or the parameters are invalid: the run fails permanently with this reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ReadError(Exception):
    """A read has no answer. If the guest does not catch it, the run fails."""

    reason = "ReadFailed"


class NotFound(ReadError):
    """No object has this name. The host runs the guest again when one is created."""

    reason = "NotFound"


class NotServed(ReadError):
    """The API server does not serve the kind. The host runs the guest again when it does."""

    reason = "NotServed"


class Forbidden(ReadError):
    """RBAC does not let the module's ServiceAccount read it."""

    reason = "Forbidden"


class Undeclared(ReadError):
    """The manifest declares the kind neither as the primary nor as owned nor as read."""

    reason = "Undeclared"


class InvalidRead(ReadError):
    """An argument of the read is malformed, for example the label selector."""

    reason = "InvalidRead"
