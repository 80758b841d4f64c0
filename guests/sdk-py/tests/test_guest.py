"""Runs of small guests, as the host and as tests run them."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fastjsonschema

from innkeeper import Context, Describe, Guest, Kind, NotFound, Object, Observed, Outcome
from innkeeper import BadInput, complete, condition, failed, partial
from innkeeper.testing import Result, conforms, run


@dataclass
class Spec:
    text: str


@dataclass
class Greeting:
    spec: Spec


@dataclass
class ConfigMap:
    data: dict[str, str]


GREETING = Kind("example.com/v1", "Greeting", "greetings", Greeting, cluster_scoped=True)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", ConfigMap)
SECRET = Kind("v1", "Secret", "secrets")
SERVICE = Kind("v1", "Service", "services")

Reconcile = Callable[[Context, Observed[Greeting, Object]], Outcome]


def guest(body: Reconcile) -> type[Guest[Greeting, Object]]:
    class Greeter(Guest[Greeting, Object]):
        manifest = (
            Describe.reconciler_of(GREETING, "greeter", "1.0.0")
            .owns(CONFIG_MAP)
            .owns(SERVICE, optional=True)
            .reads(SECRET)
            .finalizes()
            .resync(60)
            .manifest()
        )

        def reconcile(self, context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            return body(context, observed)

    return Greeter


def reconciled(body: Reconcile, **more: Any) -> Result:
    greeting = {"metadata": {"name": "hello"}, "spec": {"text": "Good day"}}
    return run(guest(body), **{"object": greeting, "parameters": {}, **more})


class Manifest(unittest.TestCase):
    def test_manifest_has_all_that_was_described(self) -> None:
        manifest = guest(lambda context, observed: complete()).manifest
        conforms("manifest", manifest)
        self.assertEqual(manifest["primary"]["scope"], "Cluster")
        self.assertEqual(manifest["owned"][1], {"kind": SERVICE.document(), "optional": True})
        self.assertEqual(manifest["reads"], [SECRET.document()])
        self.assertEqual((manifest["finalizer"], manifest["resyncSeconds"]), ("", 60))

    def test_manifest_is_invalid_when_it_has_an_unknown_member(self) -> None:
        manifest = guest(lambda context, observed: complete()).manifest
        with self.assertRaisesRegex(fastjsonschema.JsonSchemaException, "onwed"):
            conforms("manifest", {**manifest, "onwed": []})

    def test_run_is_refused_when_the_manifest_names_no_primary(self) -> None:
        policy = guest(lambda context, observed: complete())
        del policy.manifest["primary"]
        conforms("manifest", policy.manifest)
        with self.assertRaisesRegex(AssertionError, "names no primary"):
            run(policy, object={"metadata": {"name": "hello"}})


class Outcomes(unittest.TestCase):
    def test_complete_outcome_has_all_that_was_added(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            text = observed.primary.spec.text
            config_map = CONFIG_MAP.object(observed.name, namespace="a", data={"text": text})
            return (
                complete()
                .add(config_map, "orphan")
                .keep(SERVICE, "old", "a")
                .finalized()
                .status({"text": text}, copies=1)
                .condition(condition.true("Greeted", "MessageSent"))
                .event("Greeted", "it is there", "Warning")
                .requeue(seconds=5)
            )

        result = reconciled(body).complete()

        self.assertEqual(result.object(CONFIG_MAP, "hello")["data"], {"text": "Good day"})
        self.assertEqual(result.policies(CONFIG_MAP, "hello"), ["orphan"])
        self.assertEqual(result.status, {"text": "Good day", "copies": 1})
        self.assertEqual(result.condition("Greeted")["status"], "True")
        self.assertEqual(result.document["keep"][0]["name"], "old")
        self.assertEqual(result.document["events"][0]["type"], "Warning")
        self.assertEqual(result.document["requeueAfterSeconds"], 5)
        self.assertTrue(result.document["finalized"])

    def test_partial_outcome_and_failures_have_their_tags(self) -> None:
        reconciled(lambda context, observed: partial()).partial()
        result = reconciled(lambda context, observed: failed("NoText", "no").requeue(seconds=1))
        self.assertFalse(result.failed("NoText").permanent)

    def test_exception_becomes_a_failure_and_its_place_is_logged(self) -> None:
        result = reconciled(lambda context, observed: observed.raw["gone"]).failed("GuestError")
        self.assertEqual(result.message, "KeyError: 'gone'")
        ((level, text),) = result.lines
        self.assertEqual(level, "error")
        self.assertRegex(text, r"(?s)^Traceback.*test_guest\.py")

    def test_bad_input_becomes_a_permanent_failure(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            raise BadInput("TooLong", "spec.text: too long")

        self.assertTrue(reconciled(body).failed("TooLong").permanent)
        result = reconciled(
            lambda context, observed: complete().status(text=observed.primary.spec.text),
            object={"metadata": {"name": "hello"}, "spec": {}},
        )
        self.assertEqual(result.failed("UnreadablePrimary").message, "spec.text: is missing")

    def test_printed_lines_and_lines_of_the_log_are_logged(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            print("it is", observed.raw["kind"])
            context.log.warn("careful")
            print("and no more", end="", file=sys.stderr)
            return complete()

        lines = reconciled(body).lines
        expected = [("info", "it is Greeting"), ("warn", "careful"), ("info", "and no more")]
        self.assertEqual(lines, expected)


class Reads(unittest.TestCase):
    def test_owned_objects_have_their_type_and_readiness(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            (one,) = observed.owned(CONFIG_MAP)
            return complete().status(text=one.object.data["text"], ready=one.ready)

        owned = [CONFIG_MAP.object("a", data={"text": "x"}), SERVICE.object("b")]
        self.assertEqual(reconciled(body, owned=owned).status, {"text": "x", "ready": True})
        result = reconciled(body, owned=owned, not_ready={"a": "InProgress"})
        self.assertFalse(result.status["ready"])

    def test_reads_are_answered_from_the_objects_of_the_test(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            some = [one.name for one in SECRET.list(context, selector="app=x,tier!=b,on")]
            try:
                SECRET.get(context, "gone", "a")
            except NotFound as error:
                return complete().status(some=some, all=len(SECRET.list(context)), why=str(error))
            return complete()

        objects = [
            SECRET.object("one", namespace="a", labels={"app": "x", "on": ""}),
            SECRET.object("two", namespace="a", labels={"app": "x", "tier": "b", "on": ""}),
            SECRET.object("three", namespace="b"),
        ]
        status = reconciled(body, objects=objects).status
        self.assertEqual((status["some"], status["all"]), (["one"], 3))
        self.assertEqual(status["why"], "Secret gone: there is no such object")

    def test_read_error_that_is_not_caught_fails_the_run(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            SECRET.get(context, "gone", "a")
            return complete()

        self.assertFalse(reconciled(body).failed("NotFound").permanent)

    def test_read_of_a_kind_that_is_not_declared_fails(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            Kind("v1", "Pod", "pods").list(context)
            return complete()

        self.assertIn("add it to reads", reconciled(body).failed("Undeclared").message)

    def test_observed_tells_what_is_not_served_and_the_time(self) -> None:
        def body(context: Context, observed: Observed[Greeting, Object]) -> Outcome:
            return complete().status(
                served=observed.serves(SERVICE),
                deleting=observed.deleting,
                now=context.now().isoformat(),
                size=observed.parameters["size"],
            )

        result = reconciled(body, unserved=[SERVICE], deleting=True, parameters={"size": 1})
        expected = {"served": False, "deleting": True, "size": 1}
        self.assertEqual(result.status, {**expected, "now": "2026-01-01T00:00:00+00:00"})


if __name__ == "__main__":
    unittest.main()
