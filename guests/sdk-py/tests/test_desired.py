"""Whole documents of desired states."""

from __future__ import annotations

import unittest

from innkeeper import Desired, Kind, UpdateGroup, ValueSource, complete, template_hash
from innkeeper.testing import conforms

POD = Kind("v1", "Pod", "pods")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SECRET = Kind("v1", "Secret", "secrets")


class Document(unittest.TestCase):
    def is_written_as(self, desired: Desired, expected: object) -> None:
        conforms("desired", desired.document)
        self.assertEqual(desired.document, expected)

    def test_group_and_its_objects_are_written_with_what_is_set(self) -> None:
        pod, one, other = POD.object("web-0"), CONFIG_MAP.object("a"), CONFIG_MAP.object("b")
        group = (
            UpdateGroup.rolling_recreate("pods")
            .max_unavailable_percent(25)
            .min_ready_seconds(10)
            .progress_deadline_seconds(600)
            .check("Ready")
            .check_reason("Synced", "False", "Held")
            .check_status("Paused", "Unknown")
            .paused()
        )
        desired = (
            complete()
            .update_group(group)
            .update_group(UpdateGroup.on_delete("maps"))
            .add(pod, "orphan", update_group="pods")
            .add(one, update_group="maps")
            .add(other)
        )
        pods = {
            "name": "pods",
            "method": "RollingRecreate",
            "maxUnavailable": "25%",
            "minReadySeconds": 10,
            "progressDeadlineSeconds": 600,
            "statusChecks": [
                {"type": "Ready"},
                {"type": "Synced", "status": "False", "reason": "Held"},
                {"type": "Paused", "status": "Unknown"},
            ],
            "paused": True,
        }
        objects = [
            {"object": pod, "policy": ["orphan"], "updateGroup": "pods"},
            {"object": one, "updateGroup": "maps"},
            {"object": other},
        ]
        maps = {"name": "maps", "method": "OnDelete"}
        self.is_written_as(desired, {"updateGroups": [pods, maps], "objects": objects})

    def test_history_is_written_with_what_is_set(self) -> None:
        self.is_written_as(complete().revision_history(), {"revisionHistory": {}})
        self.is_written_as(
            complete().revision_history("spec.template", limit=3),
            {"revisionHistory": {"fieldPaths": ["spec.template"], "limit": 3}},
        )

    def test_methods_of_groups_are_those_of_the_contract(self) -> None:
        desired = (
            complete()
            .update_group(UpdateGroup.in_place("a"))
            .update_group(UpdateGroup.recreate("b"))
            .update_group(UpdateGroup.rolling_in_place("c").max_unavailable(2))
        )
        groups = [
            {"name": "a", "method": "InPlace"},
            {"name": "b", "method": "Recreate"},
            {"name": "c", "method": "RollingInPlace", "maxUnavailable": 2},
        ]
        self.is_written_as(desired, {"updateGroups": groups})

    def test_sources_are_written_with_the_keys_that_are_named(self) -> None:
        secret, config_map = SECRET.object("copy"), CONFIG_MAP.object("copy")
        central = ValueSource.secret("central", "pull")
        own = ValueSource.secret("", "own").key("a").key_as("b", "c")
        desired = (
            complete()
            .add(secret, values_from=[central, own])
            .add(config_map, values_from=ValueSource.config_map("central", "settings"))
        )
        sources = [
            {"kind": "Secret", "namespace": "central", "name": "pull"},
            {"kind": "Secret", "name": "own", "keys": {"a": "a", "b": "c"}},
        ]
        settings = {"kind": "ConfigMap", "namespace": "central", "name": "settings"}
        objects = [
            {"object": secret, "valuesFrom": sources},
            {"object": config_map, "valuesFrom": [settings]},
        ]
        self.is_written_as(desired, {"objects": objects})


class TemplateHash(unittest.TestCase):
    def test_hash_of_a_value_is_that_of_every_sdk(self) -> None:
        self.assertEqual(template_hash(None), "drpwggh")
        self.assertEqual(template_hash({"b": [1, "x"], "a": {"c": True}}), "qsx8vqm")
        self.assertEqual(template_hash({"a": {"c": True}, "b": [1, "x"]}), "qsx8vqm")
        texts = {"é\u2028": "\u0001\b\"\\/<&>\u007f😀", "\ue000": -1, "😀": [[], {}, False]}
        self.assertEqual(template_hash(texts), "phsrcdl")


if __name__ == "__main__":
    unittest.main()
