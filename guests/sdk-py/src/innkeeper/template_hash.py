"""A short hash of a value, for labels."""

from __future__ import annotations

import json

DIGITS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that form no words, as Kubernetes uses them in `pod-template-hash`."""


def template_hash(value: object) -> str:
    """Returns seven letters and digits that change when a value of JSON does.

    The order of members does not count. The same value has the same hash in every version of the
    SDK, and without fractions in every language.

    Use it as a label that selects the objects of one version. In the *name* of an object it makes
    another object of each version, which the host creates at once and no update group limits.
    """
    hash = 0x811C9DC5
    for byte in _text(value).encode():
        # FNV-1a of 32 bits.
        hash = (hash ^ byte) * 0x01000193 & 0xFFFFFFFF
    digits = ""
    for _ in range(7):
        hash, digit = divmod(hash, len(DIGITS))
        digits += DIGITS[digit]
    return digits


def _text(value: object) -> str:
    """JSON with sorted members, and a comma after each."""
    if isinstance(value, dict):
        members = (f"{_leaf(key)}:{_text(value[key])}," for key in sorted(value))
        return "{" + "".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + "".join(_text(one) + "," for one in value) + "]"
    return _leaf(value)


def _leaf(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
