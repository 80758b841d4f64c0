"""Objects whose values the host copies into desired objects."""

from __future__ import annotations

from . import documents


class ValueSource:
    """An object whose values the host copies into a desired object, without the guest seeing them.

    The Module grants the source, and the namespaces of the desired objects, in
    `spec.valueSources`. The host copies a Secret into Secrets, and a ConfigMap into ConfigMaps. It
    writes the copy again when the source changes.
    """

    def __init__(self, kind: documents.ValueSourceKind, namespace: str, name: str) -> None:
        self._document: documents.ValueSource = {"kind": kind, "name": name}
        if namespace:
            self._document["namespace"] = namespace
        self._keys: dict[str, str] = {}

    @classmethod
    def secret(cls, namespace: str, name: str) -> ValueSource:
        """A source that is a Secret; an empty namespace means the primary's."""
        return cls("Secret", namespace, name)

    @classmethod
    def config_map(cls, namespace: str, name: str) -> ValueSource:
        """A source that is a ConfigMap; an empty namespace means the primary's."""
        return cls("ConfigMap", namespace, name)

    def key(self, key: str) -> ValueSource:
        """Copies this key. Without a key, the host copies all of them."""
        return self.key_as(key, key)

    def key_as(self, source: str, target: str) -> ValueSource:
        """Copies the key `source` of the source to the key `target` of the desired object."""
        self._keys[source] = target
        self._document["keys"] = self._keys
        return self

    def document(self) -> documents.ValueSource:
        """The source as the document of a desired state has it."""
        return self._document
