"""Conditions of the primary. The host adds the time of the last transition."""

from __future__ import annotations

from .documents import Condition


def true(type: str, reason: str, message: str = "") -> Condition:
    """A condition that is true."""
    return {"type": type, "status": "True", "reason": reason, "message": message}


def false(type: str, reason: str, message: str = "") -> Condition:
    """A condition that is false."""
    return {"type": type, "status": "False", "reason": reason, "message": message}


def unknown(type: str, reason: str, message: str = "") -> Condition:
    """A condition that the guest cannot determine."""
    return {"type": type, "status": "Unknown", "reason": reason, "message": message}
