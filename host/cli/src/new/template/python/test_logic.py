"""Calls the guest with JSON texts, as the host does, and validates its documents."""

import json
import unittest
from pathlib import Path

import fastjsonschema

import innkeeper
import logic

SCHEMAS = Path(__file__).resolve().parent / "wit/schema"


def conforms(schema, document):
    read = json.loads((SCHEMAS / f"{schema}.json").read_text())
    # The keywords of these schemas mean the same in draft 7.
    read["$schema"] = "http://json-schema.org/draft-07/schema#"
    fastjsonschema.compile(read)(document)


def run(**object):
    head = {"apiVersion": logic.KIND["apiVersion"], "kind": logic.KIND["kind"]}
    observed = {
        "object": {**head, **object},
        "owned": [],
        "unapplied": [],
        "unserved": [],
        "deleting": False,
    }
    conforms("observed", observed)
    tag, text = innkeeper.run(logic.reconcile, json.dumps(observed), lambda level, line: None)
    document = json.loads(text)
    conforms("failure" if tag == "failed" else "desired", document)
    return tag, document


class Guest(unittest.TestCase):
    def test_manifest_conforms_to_the_schema(self):
        conforms("manifest", logic.describe())

@reconciler@    def test_config_map_has_the_name_and_the_text(self):
@namespaced_reconciler@        spec = {"text": "Good day"}
@cluster_reconciler@        spec = {"text": "Good day", "namespace": "default"}
@reconciler@        tag, desired = run(metadata={"name": "first"}, spec=spec)
@reconciler@        self.assertEqual(tag, "complete")
@reconciler@        config_map = desired["objects"][0]["object"]
@reconciler@        self.assertEqual(config_map["metadata"]["name"], "first")
@reconciler@        self.assertEqual(config_map["data"], {"text": "Good day"})
@decorator@    def test_label_has_the_value_of_the_annotation(self):
@decorator@        metadata = {"name": "first", "annotations": {"@name@/label": "web"}}
@decorator@        tag, desired = run(metadata=metadata)
@decorator@        self.assertEqual(tag, "complete")
@decorator@        merged = desired["objects"][0]
@decorator@        self.assertEqual(merged["object"]["metadata"]["labels"], {"@name@": "web"})
@decorator@        self.assertEqual(merged["policy"], ["merge"])
@decorator@
@decorator@    def test_run_fails_when_the_annotation_is_not_the_value_of_a_label(self):
@decorator@        for label in ("not a label", "a\n", "-a", "a" * 64):
@decorator@            metadata = {"name": "first", "annotations": {"@name@/label": label}}
@decorator@            tag, failure = run(metadata=metadata)
@decorator@            self.assertEqual((tag, failure["reason"]), ("failed", "InvalidAnnotation"))
@decorator@
@decorator@    def test_object_without_the_annotation_is_not_touched(self):
@decorator@        self.assertEqual(run(metadata={"name": "first"}), ("complete", {}))


if __name__ == "__main__":
    unittest.main()
