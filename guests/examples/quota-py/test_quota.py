"""Runs the guest with JSON texts, as the host does. The SDK validates all documents."""

from __future__ import annotations

import unittest
from collections.abc import Sequence
from typing import Any

from innkeeper import testing
from innkeeper.testing import Result

import quantity
from quota import LIMIT_RANGE, RESOURCE_QUOTA, Quota

SIZES: dict[str, Any] = {
    "small": {"hard": {"pods": 10, "requests.cpu": "2"}, "container": {"cpu": "100m"}},
    "large": {"hard": {"pods": 100, "requests.cpu": "20"}},
}


def run(spec: dict[str, Any], owned: Sequence[dict[str, Any]] = ()) -> Result:
    budget = {"metadata": {"name": "team", "namespace": "a"}, "spec": spec}
    return testing.run(Quota, object=budget, owned=owned, parameters={"sizes": SIZES})


def counted(hard: dict[str, str], used: dict[str, str]) -> dict[str, Any]:
    return RESOURCE_QUOTA.object("team", status={"hard": hard, "used": used})


class Reconcile(unittest.TestCase):
    def test_budget_becomes_a_quota_and_a_limit_range(self) -> None:
        result = run({"size": "small"}).complete()
        resource_quota = result.object(RESOURCE_QUOTA, "team")
        self.assertEqual(resource_quota["metadata"], {"name": "team"})
        self.assertEqual(resource_quota["spec"], {"hard": SIZES["small"]["hard"]})
        (limit,) = result.object(LIMIT_RANGE, "team")["spec"]["limits"]
        self.assertEqual(limit["default"], {"cpu": "100m"})

    def test_budget_has_no_limit_range_when_its_size_has_no_defaults(self) -> None:
        result = run({"size": "large"}).complete()
        self.assertEqual(len(result.objects(RESOURCE_QUOTA)), 1)
        self.assertEqual(result.objects(LIMIT_RANGE), [])

    def test_overrides_replace_quantities_of_the_size(self) -> None:
        result = run({"size": "small", "overrides": {"pods": "20", "services": 1}})
        wanted = {"pods": "20", "requests.cpu": "2", "services": 1}
        self.assertEqual(result.object(RESOURCE_QUOTA, "team")["spec"]["hard"], wanted)
        self.assertEqual(result.status["hard"], wanted)

    def test_run_fails_permanently_when_the_size_is_unknown(self) -> None:
        result = run({"size": "huge"}).failed("UnknownSize")
        self.assertIn("there are: large, small", result.message)
        self.assertTrue(result.permanent)

    def test_run_fails_with_the_field_when_a_quantity_is_invalid(self) -> None:
        for bad in ["lots", "", "-1", "1 Gi", "1GiB"]:
            with self.subTest(bad):
                result = run({"size": "small", "overrides": {"pods": bad}}).failed("BadQuantity")
                self.assertIn("spec.overrides: pods: ", result.message)

    def test_run_fails_with_the_field_when_a_quantity_has_another_type(self) -> None:
        result = run({"size": "small", "overrides": {"pods": True}}).failed("UnreadablePrimary")
        self.assertIn("spec.overrides.pods: True is not ", result.message)
        self.assertTrue(result.permanent)

    def test_status_and_condition_follow_the_counted_usage(self) -> None:
        hard = {"pods": "10", "requests.cpu": "2"}
        cases: list[tuple[dict[str, str], str, str]] = [
            ({}, "Unknown", ""),
            ({"pods": "9", "requests.cpu": "1999m"}, "False", ""),
            ({"pods": "10", "requests.cpu": "2k"}, "True", "pods (10 of 10), requests.cpu"),
        ]
        for used, status, message in cases:
            with self.subTest(status):
                result = run({"size": "small"}, [counted(hard, used)])
                self.assertEqual(result.status["used"], used)
                condition = result.condition("Exhausted")
                self.assertEqual(condition["status"], status)
                self.assertIn(message, condition["message"])


class Quantity(unittest.TestCase):
    def test_quantities_are_compared_as_numbers(self) -> None:
        cases: list[tuple[quantity.Quantity, quantity.Quantity]] = [
            ("999m", 1),
            ("1000", "1Ki"),
            ("1Gi", "1.1G"),
            ("900", "1e3"),
            (0, "1n"),
        ]
        for less, more in cases:
            self.assertLess(quantity.read(less, ""), quantity.read(more, ""))
        self.assertEqual(quantity.read("0.5", ""), quantity.read("500m", ""))


if __name__ == "__main__":
    unittest.main()
