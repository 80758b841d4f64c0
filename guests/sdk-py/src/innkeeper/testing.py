"""Runs guests in tests, with the texts of documents, as the host does. Needs fastjsonschema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import fastjsonschema

from . import documents, run as runs
from .context import Level
from .errors import InvalidRead, NotFound, Undeclared
from .guest import Guest
from .kind import Kind, Object

SCHEMAS = Path(__file__).resolve().parent / "schema"

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
"""The time of a run, if the test gives no other."""


def conforms(schema: str, document: object) -> None:
    """Raises an error if a document does not conform to a schema of the contract: `manifest`."""
    _validator(schema)(document)


@cache
def _validator(schema: str) -> Callable[[object], object]:
    read = json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8"))
    # The keywords of these schemas mean the same in draft 7. Defaults would change the document.
    read["$schema"] = "http://json-schema.org/draft-07/schema#"
    return cast("Callable[[object], object]", fastjsonschema.compile(read, use_default=False))


@dataclass
class Result:
    """What a run returned. Its methods fail the test if it returned something else."""

    tag: Literal["complete", "partial", "failed"]
    document: Any
    lines: list[tuple[Level, str]]
    """The log."""

    def complete(self) -> Result:
        """The run returned the whole desired state."""
        return self._has("complete")

    def partial(self) -> Result:
        """The run returned a part of the desired state."""
        return self._has("partial")

    def failed(self, reason: str) -> Result:
        """The run failed with this reason."""
        self._has("failed")
        assert self.document["reason"] == reason, f"the reason is not {reason}: {self.document}"
        return self

    @property
    def message(self) -> str:
        """The message of a failure."""
        return str(self.document["message"])

    @property
    def permanent(self) -> bool:
        """Whether a failure is permanent."""
        return bool(self.document.get("permanent", False))

    def objects(self, kind: Kind[Any]) -> list[Object]:
        """The desired objects of a kind."""
        desired = (one["object"] for one in self.document.get("objects", []))
        return [one for one in desired if _is_of(kind, one)]

    def object(self, kind: Kind[Any], name: str) -> Object:
        """The desired object of this kind and name."""
        found = [one for one in self.objects(kind) if one["metadata"]["name"] == name]
        assert len(found) == 1, f"there are {len(found)} desired objects {kind.kind} {name}"
        return found[0]

    def policies(self, kind: Kind[Any], name: str) -> list[documents.Policy]:
        """The policies of the desired object of this kind and name."""
        wanted = self.object(kind, name)
        found = [one for one in self.document["objects"] if one["object"] == wanted]
        policies: list[documents.Policy] = found[0].get("policy", [])
        return policies

    @property
    def status(self) -> dict[str, Any]:
        """The status."""
        return dict(self.document.get("status") or {})

    def condition(self, type: str) -> documents.Condition:
        """The condition of this type."""
        conditions: list[documents.Condition] = self.document.get("conditions", [])
        found = [one for one in conditions if one["type"] == type]
        assert len(found) == 1, f"there are {len(found)} conditions {type}: {conditions}"
        return found[0]

    def _has(self, tag: str) -> Result:
        assert self.tag == tag, f"the outcome is {self.tag}, not {tag}: {self.document}"
        return self


def run(
    guest: type[Guest[Any, Any]],
    *,
    object: Mapping[str, Any],
    parameters: object = None,
    owned: Iterable[Mapping[str, Any]] = (),
    objects: Iterable[Mapping[str, Any]] = (),
    unapplied: Iterable[documents.Unapplied] = (),
    unserved: Iterable[Kind[Any]] = (),
    not_ready: Mapping[str, documents.ReadinessState] | None = None,
    deleting: bool = False,
    now: datetime = NOW,
) -> Result:
    """Runs a guest once and checks all documents against their schemas.

    `object` is the primary; its apiVersion and kind may be left out. `owned` are its objects,
    `objects` others that the guest can read; all are ready but those whose names are in
    `not_ready`. The manifest gets the kinds that the parameters name.
    """
    conforms("manifest", guest.manifest)
    manifest = _with_kinds(guest.manifest, parameters)
    primary = manifest.get("primary")
    if primary is None:
        raise AssertionError("the manifest names no primary: the guest reconciles nothing")
    head = {"apiVersion": primary["apiVersion"], "kind": primary["kind"]}
    readiness = not_ready or {}
    observed: dict[str, Any] = {
        "object": {**head, "metadata": {"name": "test"}, **object},
        "owned": [_observed(one, readiness) for one in owned],
        "unapplied": list(unapplied),
        "unserved": [{"scope": "Namespaced", **kind.document()} for kind in unserved],
        "deleting": deleting,
        "reportReadFields": True,
    }
    if parameters is not None:
        observed["parameters"] = parameters
    conforms("observed", observed)
    readable = [observed["object"], *owned, *objects]
    host = FakeHost(manifest, [_observed(one, readiness) for one in readable], now)
    tag, text = runs.reconcile(guest, json.dumps(observed), host)
    document = json.loads(text)
    conforms("failure" if tag == "failed" else "desired", document)
    return Result(cast("Any", tag), document, host.lines)


@dataclass
class FakeHost:
    """The host of a test: answers reads from objects, and keeps the log."""

    manifest: documents.Manifest
    objects: list[documents.ObservedObject]
    now: datetime = NOW
    lines: list[tuple[Level, str]] = field(default_factory=list)

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> str:
        """Returns an object that the test gave."""
        for one in self._of(api_version, kind, namespace):
            if one["object"]["metadata"]["name"] == name:
                return _text("observed-object", one)
        raise NotFound(f"{kind} {name}: there is no such object")

    def list(self, api_version: str, kind: str, namespace: str, selector: str) -> str:
        """Returns the objects that the test gave and the selector matches."""
        items = self._of(api_version, kind, namespace)
        return _text("observed-list", {"items": [one for one in items if _matches(one, selector)]})

    def now_ms(self) -> float:
        """Returns the time of the test."""
        return self.now.timestamp() * 1000

    def write(self, level: Level, line: str) -> None:
        """Keeps a line of the log."""
        self.lines.append((level, line))

    def _of(self, api_version: str, kind: str, namespace: str) -> Any:
        manifest = self.manifest
        declared = [one["kind"] for one in manifest.get("owned", [])]
        declared += manifest.get("reads", [])
        if "primary" in manifest:
            declared.append(manifest["primary"])
        if not any((one["apiVersion"], one["kind"]) == (api_version, kind) for one in declared):
            raise Undeclared(f"{kind}: the manifest does not declare the kind; add it to reads")
        return [
            one
            for one in self.objects
            if (one["object"]["apiVersion"], one["object"]["kind"]) == (api_version, kind)
            and namespace in ("", one["object"]["metadata"].get("namespace", ""))
        ]


def _with_kinds(manifest: documents.Manifest, parameters: object) -> documents.Manifest:
    """The manifest as the host resolves it, but with plurals that are unknown here."""
    resolved = manifest.copy()
    for parameter in manifest.get("kindParameters", []):
        value = parameters.get(parameter["parameter"]) if isinstance(parameters, dict) else None
        for name in value if isinstance(value, list) else [value] if value is not None else []:
            kind = Kind.of_parameter(name).document()
            if parameter["role"] == "Primary":
                resolved["primary"] = kind
            elif parameter["role"] == "Owned":
                resolved["owned"] = [*resolved.get("owned", []), {"kind": kind}]
            else:
                resolved["reads"] = [*resolved.get("reads", []), kind]
    return resolved


def _observed(
    object: Mapping[str, Any], not_ready: Mapping[str, documents.ReadinessState]
) -> documents.ObservedObject:
    state = not_ready.get(object["metadata"]["name"], "Ready")
    return {"object": dict(object), "readiness": {"state": state}}


def _matches(one: documents.ObservedObject, selector: str) -> bool:
    """Whether labels match a selector of the form `a=b,c!=d,e`."""
    labels = one["object"]["metadata"].get("labels", {})
    for requirement in filter(None, selector.split(",")):
        if any(mark in requirement for mark in "()") or requirement.startswith("!"):
            raise InvalidRead(f"{requirement!r}: a test matches only a=b, a!=b and a")
        key, is_unequal, value = requirement.partition("!=")
        if not is_unequal:
            key, is_equal, value = requirement.replace("==", "=").partition("=")
            if labels.get(key) != value if is_equal else key not in labels:
                return False
        elif labels.get(key) == value:
            return False
    return True


def _text(schema: str, document: object) -> str:
    conforms(schema, document)
    return json.dumps(document)


def _is_of(kind: Kind[Any], object: Mapping[str, Any]) -> bool:
    return (object["apiVersion"], object["kind"]) == (kind.api_version, kind.kind)


__all__ = ["NOW", "FakeHost", "Result", "conforms", "run"]
