"""The export of a component, with the generated bindings in place of the host."""

from __future__ import annotations

import importlib.util
import json
import sys
import unittest
from typing import Any
from unittest import mock

from innkeeper import Context, Describe, Guest, Kind, Object, Observed, Outcome, ReadError
from innkeeper import complete

# The bindings are for a later version than the oldest that the SDK supports.
HAS_BINDINGS = sys.version_info >= (3, 11) and importlib.util.find_spec("wit_world") is not None

NAMESPACE = Kind("v1", "Namespace", "namespaces", cluster_scoped=True)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")


class Reader(Guest[Object, None]):
    manifest = Describe.reconciler_of(NAMESPACE, "reader", "1.0.0").reads(CONFIG_MAP).manifest()

    def reconcile(self, context: Context, observed: Observed[Object, None]) -> Outcome:
        print("hello", observed.name)
        names = [one.name for one in CONFIG_MAP.list(context, "a", "app=x")]
        try:
            CONFIG_MAP.get(context, "one", "a")
        except ReadError as error:
            return complete().status(why=f"{type(error).__name__}: {error}", names=names)
        return complete().status(now=context.now().isoformat(), names=names)


@unittest.skipUnless(HAS_BINDINGS, "needs the bindings that componentize-py generates")
class Component(unittest.TestCase):
    def setUp(self) -> None:
        # Only componentize-py's own folder of bindings has these modules.
        from wit_world.imports import clock, cluster, log

        self.cluster = cluster
        found = {"object": {"metadata": {"name": "one"}}, "readiness": {"state": "Ready"}}
        self.get = self.replaced(cluster, "get", json.dumps(found))
        self.list = self.replaced(cluster, "list", json.dumps({"items": [found]}))
        self.now_ms = self.replaced(clock, "now_ms", 0.0)
        self.write = self.replaced(log, "write", None)
        self.log = log

    def replaced(self, module: Any, name: str, answer: object) -> mock.Mock:
        patch = mock.patch.object(module, name, return_value=answer)
        self.addCleanup(patch.stop)
        return patch.start()

    def reconciled(self) -> Any:
        from innkeeper.component import export

        observed = {"object": {"metadata": {"name": "team"}}, "owned": []}
        outcome: Any = export(Reader)().reconcile(json.dumps(observed))
        self.assertEqual(type(outcome).__name__, "Outcome_Complete")
        return json.loads(outcome.value)["status"]

    def test_describe_returns_the_manifest(self) -> None:
        from innkeeper.component import export

        self.assertEqual(json.loads(export(Reader)().describe()), Reader.manifest)

    def test_reads_clock_and_log_are_those_of_the_host(self) -> None:
        status = self.reconciled()
        self.assertEqual(status, {"now": "1970-01-01T00:00:00+00:00", "names": ["one"]})
        kind = self.cluster.ResourceKind("v1", "ConfigMap")
        self.get.assert_called_once_with(kind, "a", "one")
        self.list.assert_called_once_with(kind, "a", "app=x")
        self.write.assert_called_once_with(self.log.Level.INFO, "hello team")

    def test_read_error_of_the_host_becomes_an_exception(self) -> None:
        from componentize_py_types import Err

        cluster = self.cluster
        for error, why in [
            (cluster.ReadError_NotFound(), "NotFound: ConfigMap a/one: there is no such object"),
            (cluster.ReadError_NotServed(), "NotServed: ConfigMap a/one: the API server does not"),
            (cluster.ReadError_Forbidden("no get"), "Forbidden: ConfigMap a/one: no get"),
            (cluster.ReadError_Undeclared(), "Undeclared: ConfigMap a/one: the manifest does not"),
            (cluster.ReadError_Invalid("bad"), "InvalidRead: ConfigMap a/one: bad"),
        ]:
            with self.subTest(why):
                self.get.side_effect = Err(error)
                self.assertTrue(self.reconciled()["why"].startswith(why))


if __name__ == "__main__":
    unittest.main()
