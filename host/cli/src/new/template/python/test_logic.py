"""Runs the guest with JSON texts, as the host does. The SDK validates all documents."""

from __future__ import annotations

import unittest

from innkeeper.testing import run

@reconciler@from logic import CONFIG_MAP, @kind@Guest
@decorator@from logic import PRIMARY, @kind@Guest


class Reconcile(unittest.TestCase):
@reconciler@    def test_config_map_has_the_name_and_the_text(self) -> None:
@namespaced_reconciler@        spec = {"text": "Good day"}
@cluster_reconciler@        spec = {"text": "Good day", "namespace": "default"}
@reconciler@        result = run(@kind@Guest, object={"metadata": {"name": "first"}, "spec": spec}).complete()
@reconciler@        config_map = result.object(CONFIG_MAP, "first")
@reconciler@        self.assertEqual(config_map["data"], {"text": "Good day"})
@decorator@    def test_label_has_the_value_of_the_annotation(self) -> None:
@decorator@        metadata = {"name": "first", "annotations": {"@name@/label": "web"}}
@decorator@        result = run(@kind@Guest, object={"metadata": metadata}).complete()
@decorator@        merged = result.object(PRIMARY, "first")
@decorator@        self.assertEqual(merged["metadata"]["labels"], {"@name@": "web"})
@decorator@        self.assertEqual(result.policies(PRIMARY, "first"), ["merge"])
@decorator@
@decorator@    def test_run_fails_when_the_annotation_is_not_the_value_of_a_label(self) -> None:
@decorator@        for label in ("not a label", "a\n", "-a", "a" * 64):
@decorator@            metadata = {"name": "first", "annotations": {"@name@/label": label}}
@decorator@            run(@kind@Guest, object={"metadata": metadata}).failed("InvalidAnnotation")
@decorator@
@decorator@    def test_object_without_the_annotation_is_not_touched(self) -> None:
@decorator@        result = run(@kind@Guest, object={"metadata": {"name": "first"}}).complete()
@decorator@        self.assertEqual(result.document, {})


if __name__ == "__main__":
    unittest.main()
