"""The imports and exports of the component. The other modules run in any Python too."""

from __future__ import annotations

from typing import Any

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import reconciler
from wit_world.imports import clock, cluster, log

from . import errors, run
from .context import Level
from .guest import Guest


def export(guest: type[Guest[Any, Any]]) -> type[exports.Reconciler]:
    """Returns the class that a component exports: `Reconciler = export(MyGuest)` in guest.py."""

    class Reconciler(exports.Reconciler):
        def describe(self) -> str:
            return run.describe(guest)

        def reconcile(self, observed: str) -> reconciler.Outcome:
            tag, text = run.reconcile(guest, observed, _Imports())
            if tag == "complete":
                return reconciler.Outcome_Complete(text)
            if tag == "partial":
                return reconciler.Outcome_Partial(text)
            return reconciler.Outcome_Failed(text)

    return Reconciler


class _Imports:
    """The host of a component."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> str:
        try:
            return cluster.get(cluster.ResourceKind(api_version, kind), namespace, name)
        except Err as error:
            raise _read_error(error.value, f"{kind} {_path(namespace, name)}") from None

    def list(self, api_version: str, kind: str, namespace: str, selector: str) -> str:
        try:
            return cluster.list(cluster.ResourceKind(api_version, kind), namespace, selector)
        except Err as error:
            place = f"in namespace {namespace}" if namespace else "in all namespaces"
            raise _read_error(error.value, f"{kind} {place}") from None

    def now_ms(self) -> float:
        return clock.now_ms()

    def write(self, level: Level, line: str) -> None:
        log.write(log.Level[level.upper()], line)


def _path(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _read_error(error: cluster.ReadError, place: str) -> errors.ReadError:
    if isinstance(error, cluster.ReadError_NotFound):
        return errors.NotFound(f"{place}: there is no such object")
    if isinstance(error, cluster.ReadError_NotServed):
        return errors.NotServed(f"{place}: the API server does not serve the kind")
    if isinstance(error, cluster.ReadError_Forbidden):
        return errors.Forbidden(f"{place}: {error.value}")
    if isinstance(error, cluster.ReadError_Invalid):
        return errors.InvalidRead(f"{place}: {error.value}")
    return errors.Undeclared(f"{place}: the manifest does not declare the kind; add it to reads")
