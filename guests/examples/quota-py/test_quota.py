"""Calls the guest with JSON texts, as the host does, and validates its documents."""

import json
import sys
import unittest
from pathlib import Path

import fastjsonschema

import innkeeper
import quantity
import quota

SCHEMAS = Path(__file__).resolve().parents[3] / "wit/schema"

SIZES = {
    "small": {"hard": {"pods": 10, "requests.cpu": "2"}, "container": {"cpu": "100m"}},
    "large": {"hard": {"pods": 100, "requests.cpu": "20"}},
}


def conforms(schema, document):
    read = json.loads((SCHEMAS / f"{schema}.json").read_text())
    # The keywords of these schemas mean the same in draft 7.
    read["$schema"] = "http://json-schema.org/draft-07/schema#"
    fastjsonschema.compile(read)(document)


def run(spec, owned=(), reconcile=quota.reconcile, log=lambda level, line: None):
    observed = {
        "object": {**quota.KIND, "metadata": {"name": "team", "namespace": "a"}, "spec": spec},
        "owned": [{"object": one, "readiness": {"state": "Ready"}} for one in owned],
        "parameters": {"sizes": SIZES},
        "unapplied": [],
        "unserved": [],
        "deleting": False,
    }
    conforms("observed", observed)
    tag, text = innkeeper.run(reconcile, json.dumps(observed), log)
    document = json.loads(text)
    conforms("failure" if tag == "failed" else "desired", document)
    return tag, document


def counted(hard, used):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "status": {"hard": hard, "used": used},
    }


class Describe(unittest.TestCase):
    def test_manifest_conforms_to_the_schema(self):
        conforms("manifest", quota.describe())

    def test_manifest_is_invalid_when_it_has_an_unknown_member(self):
        with self.assertRaisesRegex(fastjsonschema.JsonSchemaException, "onwed"):
            conforms("manifest", {**quota.describe(), "onwed": []})


class Reconcile(unittest.TestCase):
    def test_budget_becomes_a_quota_and_a_limit_range(self):
        tag, desired = run({"size": "small"})
        self.assertEqual(tag, "complete")
        resource_quota, limit_range = (one["object"] for one in desired["objects"])
        self.assertEqual(resource_quota["kind"], "ResourceQuota")
        self.assertEqual(resource_quota["metadata"], {"name": "team"})
        self.assertEqual(resource_quota["spec"], {"hard": SIZES["small"]["hard"]})
        self.assertEqual(limit_range["kind"], "LimitRange")
        self.assertEqual(limit_range["spec"]["limits"][0]["default"], {"cpu": "100m"})

    def test_budget_has_no_limit_range_when_its_size_has_no_defaults(self):
        _, desired = run({"size": "large"})
        self.assertEqual([one["object"]["kind"] for one in desired["objects"]], ["ResourceQuota"])

    def test_overrides_replace_quantities_of_the_size(self):
        _, desired = run({"size": "small", "overrides": {"pods": "20", "services": 1}})
        wanted = {"pods": "20", "requests.cpu": "2", "services": 1}
        self.assertEqual(desired["objects"][0]["object"]["spec"]["hard"], wanted)
        self.assertEqual(desired["status"]["hard"], wanted)

    def test_run_fails_permanently_when_the_size_is_unknown(self):
        tag, failure = run({"size": "huge"})
        self.assertEqual((tag, failure["reason"]), ("failed", "UnknownSize"))
        self.assertIn("there are: large, small", failure["message"])
        self.assertTrue(failure["permanent"])

    def test_run_fails_with_the_field_when_a_quantity_is_invalid(self):
        for bad in ["lots", "", "-1", "1 Gi", "1GiB", True]:
            with self.subTest(bad):
                tag, failure = run({"size": "small", "overrides": {"pods": bad}})
                self.assertEqual((tag, failure["reason"]), ("failed", "BadQuantity"))
                self.assertIn("spec.overrides: pods: ", failure["message"])

    def test_status_and_condition_follow_the_counted_usage(self):
        hard = {"pods": "10", "requests.cpu": "2"}
        cases = [
            ({}, "Unknown", ""),
            ({"pods": "9", "requests.cpu": "1999m"}, "False", ""),
            ({"pods": "10", "requests.cpu": "2k"}, "True", "pods (10 of 10), requests.cpu"),
        ]
        for used, status, message in cases:
            with self.subTest(status):
                _, desired = run({"size": "small"}, [counted(hard, used)])
                self.assertEqual(desired["status"]["used"], used)
                (condition,) = desired["conditions"]
                self.assertEqual((condition["type"], condition["status"]), ("Exhausted", status))
                self.assertIn(message, condition["message"])

    def test_exception_becomes_a_failure_and_its_place_is_logged(self):
        lines = []
        log = lambda level, line: lines.append(f"{level} {line}")
        tag, failure = run({"size": "small"}, reconcile=lambda it: it["gone"], log=log)
        self.assertEqual((tag, failure["reason"]), ("failed", "GuestError"))
        self.assertEqual(failure["message"], "KeyError: 'gone'")
        self.assertRegex(lines[0], r"(?s)^ERROR Traceback.*test_quota\.py")

    def test_printed_lines_are_logged(self):
        def reconcile(observed):
            print("it is", observed["object"]["kind"])
            print("and no more", end="", file=sys.stderr)
            return innkeeper.complete()

        lines = []
        run({"size": "small"}, reconcile=reconcile, log=lambda *line: lines.append(line))
        self.assertEqual(lines, [("INFO", "it is Budget"), ("INFO", "and no more")])


class Quantity(unittest.TestCase):
    def test_quantities_are_compared_as_numbers(self):
        for less, more in [("999m", 1), ("1000", "1Ki"), ("1Gi", "1.1G"), ("900", "1e3"), (0, "1n")]:
            self.assertLess(quantity.read(less, ""), quantity.read(more, ""))
        self.assertEqual(quantity.read("0.5", ""), quantity.read("500m", ""))


if __name__ == "__main__":
    unittest.main()
