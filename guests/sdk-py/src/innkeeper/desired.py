"""The outcomes of a run: a desired state, or a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from . import documents
from .kind import Kind, Object
from .update_group import UpdateGroup
from .value_source import ValueSource

S = TypeVar("S", bound="Outcome")


class Outcome:
    """The result of a run. `complete`, `partial` and `failed` make one."""

    tag: Literal["complete", "partial", "failed"]
    """Which outcome of the contract it is."""

    document: Any
    """Its document."""

    def status(self: S, members: Mapping[str, Any] | None = None, /, **more: Any) -> S:
        """The status of the primary, without conditions, which `condition` adds."""
        self.document.setdefault("status", {}).update({**(members or {}), **more})
        return self

    def condition(self: S, condition: documents.Condition) -> S:
        """Adds a condition; the module `condition` makes them."""
        self.document.setdefault("conditions", []).append(condition)
        return self

    def event(self: S, reason: str, message: str, type: documents.EventType = "Normal") -> S:
        """Adds an Event about the primary."""
        event: documents.Event = {"type": type, "reason": reason, "message": message}
        self.document.setdefault("events", []).append(event)
        return self

    def requeue(self: S, *, seconds: int) -> S:
        """Runs the guest again after these seconds even if nothing changed."""
        self.document["requeueAfterSeconds"] = seconds
        return self


class Desired(Outcome):
    """A desired state."""

    document: documents.DesiredDocument

    def __init__(self, tag: Literal["complete", "partial"]) -> None:
        self.tag = tag
        self.document = {}

    def add(
        self,
        object: Object,
        *policies: documents.Policy,
        update_group: str | None = None,
        values_from: ValueSource | Iterable[ValueSource] = (),
    ) -> Desired:
        """Adds an object with the fields that the guest has an opinion about, and no others.

        Without policies the primary owns it, the host keeps it as desired, and deletes it when a
        complete desired state lacks it. The host updates it with the others of its update group,
        and copies the values of other objects into it.
        """
        desired: documents.DesiredObject = {"object": object}
        if policies:
            desired["policy"] = list(policies)
        if update_group is not None:
            desired["updateGroup"] = update_group
        sources = [values_from] if isinstance(values_from, ValueSource) else values_from
        if values := [source.document() for source in sources]:
            desired["valuesFrom"] = values
        self.document.setdefault("objects", []).append(desired)
        return self

    def update_group(self, group: UpdateGroup) -> Desired:
        """Adds a group of objects that the host updates together."""
        self.document.setdefault("updateGroups", []).append(group.document())
        return self

    def revision_history(self, *field_paths: str, limit: int | None = None) -> Desired:
        """Which fields of the primary the host stores (`spec` without arguments), so that it creates
        a missing object of a rolling group as it was while the update stops. The manifest has to
        own `apps/v1` `ControllerRevision`."""
        history: documents.RevisionHistory = {}
        if field_paths:
            history["fieldPaths"] = list(field_paths)
        if limit is not None:
            history["limit"] = limit
        self.document["revisionHistory"] = history
        return self

    def keep(self, kind: Kind[Any], name: str, namespace: str = "") -> Desired:
        """Keeps an object of an earlier run as it is, without desiring it."""
        reference: documents.Reference = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "namespace": namespace,
            "name": name,
        }
        self.document.setdefault("keep", []).append(reference)
        return self

    def finalized(self) -> Desired:
        """The finalization of a deleted primary is done."""
        self.document["finalized"] = True
        return self


class Failed(Outcome):
    """A failure: the host changes no object."""

    document: documents.Failure

    def __init__(self, document: documents.Failure) -> None:
        self.tag = "failed"
        self.document = document


def complete() -> Desired:
    """The whole desired state: the host deletes earlier objects that are not in it."""
    return Desired("complete")


def partial() -> Desired:
    """A part of the desired state: the host applies it and deletes nothing."""
    return Desired("partial")


def failed(reason: str, message: str, *, permanent: bool = False) -> Failed:
    """Fails the run: the host changes no object and retries with backoff.

    `reason` is one CamelCase word, `message` is for people. A permanent failure is retried only
    when something changes.
    """
    document: documents.Failure = {"reason": reason, "message": message}
    if permanent:
        document["permanent"] = True
    return Failed(document)
