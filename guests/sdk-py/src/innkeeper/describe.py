"""The manifest of a guest."""

from __future__ import annotations

from typing import Any

from . import documents
from .kind import Kind


class Describe:
    """Makes a manifest: the kinds that a guest reconciles, creates and reads."""

    def __init__(self, document: documents.Manifest) -> None:
        self._document = document

    @classmethod
    def reconciler_of(cls, primary: Kind[Any], name: str, version: str) -> Describe:
        """A guest that reconciles a kind. `version` is a semantic version such as 1.2.0."""
        return cls({"name": name, "version": version, "primary": primary.document()})

    def decorates(self) -> Describe:
        """Another module or controller owns the primaries; the guest returns no status."""
        self._document["decorates"] = True
        return self

    def owns(self, *kinds: Kind[Any], optional: bool = False) -> Describe:
        """Kinds of which the guest creates objects; optional ones may be unknown to the cluster."""
        return self._own(kinds, optional=optional, merges=False)

    def merges_into(self, *kinds: Kind[Any], optional: bool = False) -> Describe:
        """Kinds into whose existing objects the guest merges fields (policy `merge`)."""
        return self._own(kinds, optional=optional, merges=True)

    def reads(self, *kinds: Kind[Any]) -> Describe:
        """Other kinds that the guest reads."""
        self._document.setdefault("reads", []).extend(kind.document() for kind in kinds)
        return self

    def decorator_of_parameter(self, parameter: str) -> Describe:
        """A parameter of the Module names the kind of the primaries; the guest decorates them.

        Its value is an object with `apiVersion` and `kind`; without it, the kind of
        `reconciler_of` is the primary's.
        """
        return self.decorates()._kind_parameter({"parameter": parameter, "role": "Primary"})

    def owns_parameter(self, parameter: str) -> Describe:
        """A parameter names kinds of which the guest creates objects: one, or at most 20."""
        return self._kind_parameter({"parameter": parameter, "role": "Owned"})

    def merges_into_parameter(self, parameter: str) -> Describe:
        """A parameter names kinds into whose existing objects the guest merges fields."""
        return self._kind_parameter({"parameter": parameter, "role": "Owned", "merges": True})

    def reads_parameter(self, parameter: str) -> Describe:
        """A parameter names other kinds that the guest reads."""
        return self._kind_parameter({"parameter": parameter, "role": "Reads"})

    def crd(self, definition: dict[str, Any]) -> Describe:
        """A CustomResourceDefinition that the host installs."""
        self._document.setdefault("crds", []).append(definition)
        return self

    def parameters(self, schema: dict[str, Any]) -> Describe:
        """The JSON Schema of the Module's parameters."""
        self._document["parametersSchema"] = schema
        return self

    def selects(self, selector: documents.PrimarySelector) -> Describe:
        """Which objects of the primary kind the guest reconciles."""
        self._document["selector"] = selector
        return self

    def finalizes(self, name: str = "") -> Describe:
        """The host runs the guest for a deleted primary until it returns `finalized`."""
        self._document["finalizer"] = name
        return self

    def resync(self, seconds: int) -> Describe:
        """Seconds after which every primary is reconciled again even if nothing changed."""
        self._document["resyncSeconds"] = seconds
        return self

    def manifest(self) -> documents.Manifest:
        """The manifest."""
        return self._document

    def _kind_parameter(self, parameter: documents.KindParameter) -> Describe:
        self._document.setdefault("kindParameters", []).append(parameter)
        return self

    def _own(self, kinds: tuple[Kind[Any], ...], *, optional: bool, merges: bool) -> Describe:
        for kind in kinds:
            owned: documents.OwnedKind = {"kind": kind.document()}
            if merges:
                owned["merges"] = True
            if optional:
                owned["optional"] = True
            self._document.setdefault("owned", []).append(owned)
        return self
