"""Kinds of Kubernetes resources, their desired objects and reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, List, TypeVar, overload

from . import documents
from .observed import ObservedObject

if TYPE_CHECKING:
    from .context import Context

Object = dict[str, Any]
"""An object as JSON has it."""

T = TypeVar("T")


class Kind(Generic[T]):
    """A kind; `T` is the type of its objects: a dataclass, a TypedDict, or `Object`."""

    object_type: type[T]
    """The type of the objects."""

    @overload
    def __init__(
        self: Kind[Object], api_version: str, kind: str, plural: str, *, cluster_scoped: bool = ...
    ) -> None: ...

    @overload
    def __init__(
        self, api_version: str, kind: str, plural: str, type: type[T], *, cluster_scoped: bool = ...
    ) -> None: ...

    def __init__(
        self,
        api_version: str,
        kind: str,
        plural: str,
        type: type[Any] = dict,
        *,
        cluster_scoped: bool = False,
    ) -> None:
        self.api_version = api_version
        self.kind = kind
        self.plural = plural
        self.object_type = type
        self.cluster_scoped = cluster_scoped

    @staticmethod
    def of_parameter(value: Mapping[str, Any]) -> Kind[Object]:
        """The kind that a parameter of the Module names: `apiVersion` and `kind`."""
        return Kind(value["apiVersion"], value["kind"], plural="")

    def document(self) -> documents.Kind:
        """The kind as a manifest has it."""
        document: documents.Kind = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "plural": self.plural,
        }
        if self.cluster_scoped:
            document["scope"] = "Cluster"
        return document

    def object(
        self,
        name: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Object:
        """A desired object with these fields, and no others: `spec={...}`, `data={...}`.

        Without a namespace it is in that of the primary.
        """
        metadata: Object = {"name": name}
        if namespace is not None:
            metadata["namespace"] = namespace
        if labels is not None:
            metadata["labels"] = dict(labels)
        if annotations is not None:
            metadata["annotations"] = dict(annotations)
        head = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}
        return {**head, **fields}

    def get(self, context: Context, name: str, namespace: str = "") -> ObservedObject[T]:
        """Reads one object; the host runs the guest again when the answer changes.

        Raises NotFound, or another ReadError.
        """
        text = context.host.get(self.api_version, self.kind, namespace, name)
        return ObservedObject(self.object_type, json.loads(text))

    def list(
        self, context: Context, namespace: str = "", selector: str = ""
    ) -> List[ObservedObject[T]]:
        """Reads all objects, or those of a namespace, whose labels the selector matches.

        They are ordered by namespace and name. Raises a ReadError.
        """
        text = context.host.list(self.api_version, self.kind, namespace, selector)
        document: documents.ObservedList = json.loads(text)
        return [ObservedObject(self.object_type, one) for one in document["items"]]
