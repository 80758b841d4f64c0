"""The observed state of one primary."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import documents
from .decode import decode

if TYPE_CHECKING:
    from .kind import Kind

P = TypeVar("P")
Q = TypeVar("Q")
T = TypeVar("T")


class _Named:
    """The metadata of an object."""

    raw: dict[str, Any]
    """The object as JSON has it."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata, without `managedFields`."""
        metadata: dict[str, Any] = self.raw.get("metadata", {})
        return metadata

    @property
    def name(self) -> str:
        """The name."""
        return str(self.metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        """The namespace; empty for a cluster-scoped kind."""
        return str(self.metadata.get("namespace", ""))

    @property
    def labels(self) -> dict[str, str]:
        """The labels."""
        return dict(self.metadata.get("labels") or {})

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations."""
        return dict(self.metadata.get("annotations") or {})


class ObservedObject(_Named, Generic[T]):
    """An object and its readiness."""

    def __init__(self, type: type[T], document: documents.ObservedObject) -> None:
        self._type = type
        self.raw = document["object"]
        readiness = document["readiness"]
        self.state = readiness["state"]
        """The state of the object, by the rules of kstatus."""
        self.message = readiness.get("message", "")
        """The reason of the state, for people; empty if ready."""

    @cached_property
    def object(self) -> T:
        """The object. Raises BadInput if it does not fit its type."""
        place = f"{self.raw.get('kind')} {self.name}"
        return decode(self._type, self.raw, place, reason="UnreadableObject")

    @property
    def ready(self) -> bool:
        """Whether the object is ready."""
        return self.state == "Ready"


class Observed(_Named, Generic[P, Q]):
    """The observed state: the primary of type `P`, its objects, and parameters of type `Q`."""

    def __init__(
        self, primary: type[P], parameters: type[Q], document: documents.ObservedDocument
    ) -> None:
        self._primary = primary
        self._parameters = parameters
        self.document = document
        self.raw = document["object"]

    @cached_property
    def primary(self) -> P:
        """The primary. Raises BadInput if it does not fit its type."""
        return decode(self._primary, self.raw, reason="UnreadablePrimary")

    @cached_property
    def parameters(self) -> Q:
        """The parameters of the Module. Raises BadInput if they do not fit their type."""
        value = self.document.get("parameters")
        return decode(self._parameters, value, "parameters", reason="UnreadableParameters")

    def owned(self, kind: Kind[T]) -> list[ObservedObject[T]]:
        """The objects of a kind that belong to this primary, ordered by namespace and name."""
        return [
            ObservedObject(kind.object_type, one)
            for one in self.document["owned"]
            if one["object"].get("apiVersion") == kind.api_version
            and one["object"].get("kind") == kind.kind
        ]

    @property
    def unapplied(self) -> list[documents.Unapplied]:
        """Desired objects that the host could not apply after the previous run, with reasons."""
        return self.document.get("unapplied", [])

    def serves(self, kind: Kind[Any]) -> bool:
        """Whether the API server serves a kind of the manifest."""
        head = (kind.api_version, kind.kind)
        unserved = self.document.get("unserved", [])
        return all((one["apiVersion"], one["kind"]) != head for one in unserved)

    @property
    def deleting(self) -> bool:
        """Whether the primary is being deleted and waits for `finalized` of this guest."""
        return self.document.get("deleting", False)
