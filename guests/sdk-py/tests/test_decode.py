"""Decoding of JSON into the types of a guest."""

from __future__ import annotations

import unittest
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal, Optional, TypedDict

from innkeeper import BadInput, decode


class Port(TypedDict):
    number: int


@dataclass
class Inner:
    min_ready: int
    from_: str = "default"


@dataclass
class Outer:
    inner: Inner
    many: list[Inner] = field(default_factory=list)
    by_name: dict[str, Inner] = field(default_factory=dict)
    maybe: Optional[Inner] = None
    amount: str | int = 0
    ratio: float = 0.5
    kind: Literal["a", "b"] = "a"
    is_paused: bool = False
    port: Optional[Port] = None
    at: Optional[datetime] = None
    any: Any = None


class Decode(unittest.TestCase):
    def test_members_of_all_types_are_read(self) -> None:
        inner = {"minReady": 1, "from": "here", "unknown": True}
        document = {
            "inner": inner,
            "many": [inner],
            "byName": {"a-b": inner},
            "maybe": inner,
            "amount": "1",
            "ratio": 2,
            "kind": "b",
            "isPaused": True,
            "port": {"number": 1},
            "at": "2026-01-31T12:00:00Z",
            "any": [1],
        }
        expected = Inner(1, "here")
        outer = decode(Outer, document)
        self.assertEqual(
            outer,
            Outer(
                inner=expected,
                many=[expected],
                by_name={"a-b": expected},
                maybe=expected,
                amount="1",
                ratio=2.0,
                kind="b",
                is_paused=True,
                port={"number": 1},
                at=datetime(2026, 1, 31, 12, tzinfo=timezone.utc),
                any=[1],
            ),
        )
        self.assertIsInstance(outer.ratio, float)

    def test_members_that_are_left_out_have_their_defaults(self) -> None:
        outer = decode(Outer, {"inner": {"minReady": 1}, "maybe": None})
        self.assertEqual(outer, Outer(Inner(1)))

    def test_value_that_does_not_fit_is_refused_with_its_path(self) -> None:
        cases = [
            ({}, "inner: is missing"),
            ({"inner": {"minReady": "1"}}, "inner.minReady: '1' is not an integer"),
            ({"inner": {"minReady": True}}, "inner.minReady: True is not an integer"),
            ({"many": [{}]}, "many[0].minReady: is missing"),
            ({"byName": {"x": 1}}, "byName.x: 1 is not an object"),
            ({"maybe": {}}, "maybe.minReady: is missing"),
            ({"kind": "c"}, "kind: 'c' is not 'a' or 'b'"),
            ({"amount": []}, "amount: [] is not an integer"),
            ({"at": "today"}, "at: 'today' is not a time"),
            ([], "[] is not an object"),
        ]
        for document, message in cases:
            with self.subTest(message):
                if isinstance(document, dict) and message[:5] != "inner":
                    document = {"inner": {"minReady": 1}, **document}
                with self.assertRaises(BadInput) as raised:
                    decode(Outer, document)
                self.assertTrue(str(raised.exception).startswith(message), str(raised.exception))

    def test_type_that_json_has_not_is_an_error_of_the_guest(self) -> None:
        with self.assertRaisesRegex(TypeError, "use a dataclass"):
            decode(complex, 1)


if __name__ == "__main__":
    unittest.main()
