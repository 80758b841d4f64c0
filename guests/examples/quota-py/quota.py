"""Creates a ResourceQuota and a LimitRange for each Budget.

The Module's parameters define the sizes, so cluster administrators decide what "small" means, and
users of a namespace select a size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from innkeeper import BadInput, Context, Describe, Guest, Kind, Observed, Outcome
from innkeeper import complete, condition
from innkeeper.documents import Condition

import quantity
from crd import CRD
from quantity import Quantity

Quantities = dict[str, Quantity]


@dataclass
class Spec:
    size: str
    overrides: Quantities = field(default_factory=dict)


@dataclass
class Budget:
    spec: Spec


@dataclass
class Size:
    hard: Quantities
    container: Quantities = field(default_factory=dict)


@dataclass
class Parameters:
    sizes: dict[str, Size]


@dataclass
class Counted:
    """The usage that Kubernetes has counted; empty at first."""

    hard: Quantities = field(default_factory=dict)
    used: Quantities = field(default_factory=dict)


@dataclass
class ResourceQuota:
    status: Counted = field(default_factory=Counted)


BUDGET = Kind("example.innkeeper.dev/v1", "Budget", "budgets", Budget)
RESOURCE_QUOTA = Kind("v1", "ResourceQuota", "resourcequotas", ResourceQuota)
LIMIT_RANGE = Kind("v1", "LimitRange", "limitranges")

QUANTITIES = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}

PARAMETERS: dict[str, Any] = {
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


class Quota(Guest[Budget, Parameters]):
    manifest = (
        Describe.reconciler_of(BUDGET, "quota-py", "0.2.0")
        .owns(RESOURCE_QUOTA, LIMIT_RANGE)
        .crd(CRD)
        .parameters(PARAMETERS)
        .manifest()
    )

    def reconcile(self, context: Context, observed: Observed[Budget, Parameters]) -> Outcome:
        spec = observed.primary.spec
        size = chosen(spec.size, observed.parameters.sizes)
        hard = {**size.hard, **spec.overrides}
        for resource, amount in hard.items():
            place = "spec.overrides" if resource in spec.overrides else f"size {spec.size}"
            quantity.read(amount, f"{place}: {resource}")

        desired = complete().add(RESOURCE_QUOTA.object(observed.name, spec={"hard": hard}))
        if container := size.container:
            limit = {"type": "Container", "default": container, "defaultRequest": container}
            desired.add(LIMIT_RANGE.object(observed.name, spec={"limits": [limit]}))

        quotas = observed.owned(RESOURCE_QUOTA)
        counted = quotas[0].object.status if quotas else Counted()
        return desired.status(hard=hard, used=counted.used).condition(exhausted(counted))


def chosen(size: str, sizes: dict[str, Size]) -> Size:
    if size not in sizes:
        known = ", ".join(sorted(sizes)) or "none"
        raise BadInput("UnknownSize", f"spec.size: there is no size {size!r}; there are: {known}")
    return sizes[size]


def exhausted(counted: Counted) -> Condition:
    """Returns the condition that says whether a resource is used up."""
    hard, used = counted.hard, counted.used
    if not used:
        message = "Kubernetes has not counted the usage yet"
        return condition.unknown("Exhausted", "NotCounted", message)
    spent = [
        f"{resource} ({used[resource]} of {hard[resource]})"
        for resource in sorted(hard.keys() & used.keys())
        if quantity.read(used[resource], resource) >= quantity.read(hard[resource], resource)
    ]
    if spent:
        return condition.true("Exhausted", "NothingLeft", f"used up: {', '.join(spent)}")
    return condition.false("Exhausted", "Enough")
