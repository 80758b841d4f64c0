"""A guest whose kinds are parameters of the Module."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import TypedDict

from innkeeper import Context, Describe, Guest, Kind, Object, Observed, Outcome, complete
from innkeeper.testing import run

MANIFEST = json.loads(
    (Path(__file__).resolve().parents[2] / "sdk/tests/kind_parameters.json").read_text("utf-8")
)


class Parameters(TypedDict):
    target: Object
    copies: Object
    watch: Object


class Copier(Guest[Object, Parameters]):
    manifest = (
        Describe.reconciler_of(
            Kind("v1", "Namespace", "namespaces", cluster_scoped=True), "copier", "1.0.0"
        )
        .parameters(MANIFEST["parametersSchema"])
        .decorator_of_parameter("target")
        .owns_parameter("copies")
        .merges_into_parameter("labelled")
        .reads_parameter("watch")
        .manifest()
    )

    def reconcile(self, context: Context, observed: Observed[Object, Parameters]) -> Outcome:
        watch = Kind.of_parameter(observed.parameters["watch"])
        copies = Kind.of_parameter(observed.parameters["copies"])
        source = watch.get(context, "source", observed.namespace)
        return complete().add(copies.object(observed.name, data=source.object["data"]))


class KindParameters(unittest.TestCase):
    def test_manifest_with_kind_parameters_is_that_of_every_sdk(self) -> None:
        self.assertEqual(Copier.manifest, MANIFEST)

    def test_guest_reads_and_desires_the_kinds_of_its_parameters(self) -> None:
        secret, config_map = Kind("v1", "Secret", "secrets"), Kind("v1", "ConfigMap", "configmaps")
        result = run(
            Copier,
            object={"metadata": {"name": "web", "namespace": "a"}},
            parameters={
                "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
                "copies": {"apiVersion": "v1", "kind": "Secret"},
                "watch": {"apiVersion": "v1", "kind": "ConfigMap"},
            },
            objects=[config_map.object("source", namespace="a", data={"a": "b"})],
        )
        self.assertEqual(result.complete().object(secret, "web")["data"], {"a": "b"})


if __name__ == "__main__":
    unittest.main()
