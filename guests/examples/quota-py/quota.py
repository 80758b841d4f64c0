"""Creates a ResourceQuota and a LimitRange for each Budget.

The Module's parameters define the sizes, so cluster administrators decide what "small" means, and
users of a namespace select a size.
"""

import quantity
from crd import CRD, KIND
from innkeeper import BadInput, complete, condition

RESOURCE_QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "plural": "resourcequotas"}
LIMIT_RANGE = {"apiVersion": "v1", "kind": "LimitRange", "plural": "limitranges"}

QUANTITIES = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}

PARAMETERS = {
    "type": "object",
    "required": ["sizes"],
    "additionalProperties": False,
    "properties": {
        "sizes": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["hard"],
                "additionalProperties": False,
                "properties": {"hard": QUANTITIES, "container": QUANTITIES},
            },
        },
    },
}


def describe():
    """Returns the `manifest` document."""
    return {
        "name": "quota-py",
        "version": "0.1.0",
        "primary": KIND,
        "owned": [{"kind": RESOURCE_QUOTA}, {"kind": LIMIT_RANGE}],
        "crds": [CRD],
        "parametersSchema": PARAMETERS,
    }


def reconcile(observed):
    """Computes the desired state from an `observed` document."""
    spec = observed["object"]["spec"]
    size = chosen(spec["size"], observed["parameters"]["sizes"])
    hard = {**size["hard"], **spec.get("overrides", {})}
    for resource, amount in hard.items():
        place = "spec.overrides" if resource in spec.get("overrides", {}) else f"size {spec['size']}"
        quantity.read(amount, f"{place}: {resource}")

    name = observed["object"]["metadata"]["name"]
    objects = [made(RESOURCE_QUOTA, name, {"hard": hard})]
    if container := size.get("container"):
        limit = {"type": "Container", "default": container, "defaultRequest": container}
        objects.append(made(LIMIT_RANGE, name, {"limits": [limit]}))

    # The usage that Kubernetes has counted; empty at first.
    counted = counted_by(observed["owned"])
    return complete(
        objects=[{"object": one} for one in objects],
        status={"hard": hard, "used": counted.get("used", {})},
        conditions=[exhausted(counted)],
    )


def chosen(size, sizes):
    if size not in sizes:
        known = ", ".join(sorted(sizes)) or "none"
        raise BadInput("UnknownSize", f"spec.size: there is no size {size!r}; there are: {known}")
    return sizes[size]


def made(kind, name, spec):
    head = {"apiVersion": kind["apiVersion"], "kind": kind["kind"]}
    return {**head, "metadata": {"name": name}, "spec": spec}


def counted_by(owned):
    quotas = [one["object"] for one in owned if one["object"]["kind"] == "ResourceQuota"]
    return quotas[0].get("status", {}) if quotas else {}


def exhausted(counted):
    """Returns the condition that says whether a resource is used up."""
    hard, used = counted.get("hard", {}), counted.get("used", {})
    if not used:
        return condition("Exhausted", None, "NotCounted", "Kubernetes has not counted the usage yet")
    spent = [
        f"{resource} ({used[resource]} of {hard[resource]})"
        for resource in sorted(hard.keys() & used.keys())
        if quantity.read(used[resource], resource) >= quantity.read(hard[resource], resource)
    ]
    if spent:
        return condition("Exhausted", True, "NothingLeft", f"used up: {', '.join(spent)}")
    return condition("Exhausted", False, "Enough")
