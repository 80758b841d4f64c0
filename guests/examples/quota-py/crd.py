"""The CustomResourceDefinition of a Budget."""

GROUP = "example.innkeeper.dev"
KIND = {"apiVersion": f"{GROUP}/v1", "kind": "Budget", "plural": "budgets"}

QUANTITIES = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {
            "description": "One of the sizes that the Module's parameters have.",
            "type": "string",
            "minLength": 1,
            "maxLength": 63,
        },
        "overrides": {
            "description": "Instead of what the size says: by name of the resource, as in a ResourceQuota.",
            "maxProperties": 64,
            **QUANTITIES,
        },
    },
}

CONDITION = {
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

STATUS = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "hard": {"description": "What the namespace may have.", **QUANTITIES},
        "used": {"description": "What it has of that.", **QUANTITIES},
        "conditions": {
            "type": "array",
            "items": CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}


def _column(name, path):
    return {"name": name, "type": "string", "jsonPath": path}


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{KIND['plural']}.{GROUP}"},
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
                        "description": "What its namespace may have: a ResourceQuota and a LimitRange of its name.",
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": SPEC, "status": STATUS},
                    }
                },
            }
        ],
    },
}
