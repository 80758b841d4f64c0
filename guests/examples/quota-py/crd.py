"""The CustomResourceDefinition of a Budget."""

from __future__ import annotations

from typing import Any

GROUP = "example.innkeeper.dev"

QUANTITIES: dict[str, Any] = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {
            "description": "One of the sizes in the Module's parameters.",
            "type": "string",
            "minLength": 1,
            "maxLength": 63,
        },
        "overrides": {
            "description": "Quantities by resource name, as in a ResourceQuota; they override those of the size.",
            "maxProperties": 64,
            **QUANTITIES,
        },
    },
}

CONDITION: dict[str, Any] = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string"},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64"},
    },
}

STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "hard": {"description": "Limits of the namespace.", **QUANTITIES},
        "used": {"description": "Usage of the namespace.", **QUANTITIES},
        "conditions": {
            "type": "array",
            "items": CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}


def _column(name: str, path: str) -> dict[str, str]:
    return {"name": name, "type": "string", "jsonPath": path}


CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"budgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Budget", "plural": "budgets", "singular": "budget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    _column("Size", ".spec.size"),
                    _column("Exhausted", '.status.conditions[?(@.type=="Exhausted")].status'),
                    _column("Synced", '.status.conditions[?(@.type=="Synced")].status'),
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "description": "Limits of a namespace: a ResourceQuota and a LimitRange with the name of the Budget.",
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": SPEC, "status": STATUS},
                    }
                },
            }
        ],
    },
}
