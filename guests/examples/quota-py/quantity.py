"""Parses Kubernetes quantities: 100m, 2, 1.5, 8Gi."""

from __future__ import annotations

import re
from decimal import Decimal

from innkeeper import BadInput

Quantity = str | int

FACTORS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)}
FACTORS |= {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)}
FACTORS |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)}
FORM = re.compile(r"(\d+(?:\.\d+)?)(?:[eE](\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)


def read(quantity: Quantity, place: str) -> Decimal:
    """Returns the number of a quantity; `place` names its field in error messages."""
    found = FORM.fullmatch(str(quantity))
    if not found or isinstance(quantity, bool):
        raise BadInput("BadQuantity", f"{place}: {quantity!r} is not a quantity like 500m, 2 or 8Gi")
    digits, exponent, suffix = found.groups()
    return Decimal(digits) * (Decimal(10) ** int(exponent or 0)) * FACTORS[suffix or ""]
