"""Groups of objects that the host updates together."""

from __future__ import annotations

from . import documents


class UpdateGroup:
    """Objects that the host updates together: by which method, how many at a time, and when an
    updated object is good enough to go on. Missing objects are created at once.

    An object is updated under its name: a name that changes with the content makes a new object
    instead.
    """

    def __init__(self, name: str, method: documents.UpdateMethod) -> None:
        self._document: documents.UpdateGroup = {"name": name, "method": method}

    @classmethod
    def on_delete(cls, name: str) -> UpdateGroup:
        """The host writes to no object that exists: each changes when somebody deletes it."""
        return cls(name, "OnDelete")

    @classmethod
    def in_place(cls, name: str) -> UpdateGroup:
        """The host applies all changes at once, as without a group."""
        return cls(name, "InPlace")

    @classmethod
    def recreate(cls, name: str) -> UpdateGroup:
        """The host deletes and creates one object, then all others that have its change."""
        return cls(name, "Recreate")

    @classmethod
    def rolling_in_place(cls, name: str) -> UpdateGroup:
        """The host applies changes, to one object at a time."""
        return cls(name, "RollingInPlace")

    @classmethod
    def rolling_recreate(cls, name: str) -> UpdateGroup:
        """The host deletes and creates the objects, one at a time."""
        return cls(name, "RollingRecreate")

    def max_unavailable(self, objects: int) -> UpdateGroup:
        """How many objects may be unavailable because of an update; at least 1. Default: 1."""
        self._document["maxUnavailable"] = objects
        return self

    def max_unavailable_percent(self, percent: int) -> UpdateGroup:
        """The share of the objects that may be unavailable because of an update, from 1 to 100,
        rounded down to at least one object."""
        self._document["maxUnavailable"] = f"{percent}%"
        return self

    def min_ready_seconds(self, seconds: int) -> UpdateGroup:
        """Seconds for which an updated object has to be ready before the host goes on."""
        self._document["minReadySeconds"] = seconds
        return self

    def progress_deadline_seconds(self, seconds: int) -> UpdateGroup:
        """Seconds after which an updated object that is not available has failed, which stops the
        update."""
        self._document["progressDeadlineSeconds"] = seconds
        return self

    def check(self, type: str) -> UpdateGroup:
        """Requires a condition that is true, in addition to readiness, before the host goes on."""
        return self._check({"type": type})

    def check_status(self, type: str, status: documents.ConditionStatus) -> UpdateGroup:
        """Requires a condition of this status before the host goes on."""
        return self._check({"type": type, "status": status})

    def check_reason(
        self, type: str, status: documents.ConditionStatus, reason: str
    ) -> UpdateGroup:
        """Requires a condition of this status and reason before the host goes on."""
        return self._check({"type": type, "status": status, "reason": reason})

    def paused(self, paused: bool = True) -> UpdateGroup:
        """Whether the host updates no object; it still creates missing ones."""
        self._document["paused"] = paused
        return self

    def document(self) -> documents.UpdateGroup:
        """The group as the document of a desired state has it."""
        return self._document

    def _check(self, check: documents.StatusCheck) -> UpdateGroup:
        self._document.setdefault("statusChecks", []).append(check)
        return self
