"""Decodes JSON into the types of a guest: dataclasses, and the types of JSON itself."""

from __future__ import annotations

import dataclasses
import types
import typing
from datetime import datetime
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from .errors import BadInput

T = TypeVar("T")


def decode(type: type[T], value: object, place: str = "", reason: str = "BadInput") -> T:
    """Returns `value` as an instance of `type`.

    A field `min_ready` of a dataclass is the member `minReady`. The host may know more members than
    the dataclass, which are left out. A TypedDict is the object itself, and only that it is an
    object is checked.

    Raises BadInput with this reason and the path of the first member that does not fit.
    """
    try:
        return typing.cast(T, _decode(type, value, place))
    except _Mismatch as mismatch:
        raise BadInput(reason, str(mismatch)) from None


class _Mismatch(Exception):
    """A value does not fit; the text has its path."""

    def __init__(self, place: str, text: str) -> None:
        super().__init__(f"{place}: {text}" if place else text)


def _decode(type: Any, value: Any, place: str) -> Any:
    if type is Any or type is object:
        return value
    if type is None or type is types.NoneType:
        return _expect(value is None, None, "null", value, place)
    origin, arguments = get_origin(type), get_args(type)
    if origin is Union or origin is types.UnionType:
        return _decode_union(arguments, value, place)
    if origin is Literal:
        names = " or ".join(repr(one) for one in arguments)
        return _expect(value in arguments, value, names, value, place)
    if dataclasses.is_dataclass(type):
        return _decode_dataclass(type, value, place)
    if type is list or origin is list:
        _expect(isinstance(value, list), value, "a list", value, place)
        item = arguments[0] if arguments else Any
        return [_decode(item, one, f"{place}[{index}]") for index, one in enumerate(value)]
    if type is dict or origin is dict or typing.is_typeddict(type):
        _expect(isinstance(value, dict), value, "an object", value, place)
        member = arguments[1] if arguments else Any
        return {name: _decode(member, one, _join(place, name)) for name, one in value.items()}
    if type is datetime:
        return _decode_time(value, place)
    return _decode_scalar(type, value, place)


def _decode_scalar(type: Any, value: Any, place: str) -> Any:
    # bool is a kind of int to Python, and not to JSON.
    is_bool = isinstance(value, bool)
    if type is bool:
        return _expect(is_bool, value, "true or false", value, place)
    if type is int:
        return _expect(isinstance(value, int) and not is_bool, value, "an integer", value, place)
    if type is float:
        is_number = isinstance(value, (int, float)) and not is_bool
        return float(_expect(is_number, value, "a number", value, place))
    if type is str:
        return _expect(isinstance(value, str), value, "a text", value, place)
    raise TypeError(f"{place}: JSON cannot be decoded into {type!r}; use a dataclass")


def _decode_union(choices: tuple[Any, ...], value: Any, place: str) -> Any:
    mismatches = []
    # null first: every other choice says more about what does not fit.
    for choice in sorted(choices, key=lambda choice: choice is not types.NoneType):
        try:
            return _decode(choice, value, place)
        except _Mismatch as mismatch:
            mismatches.append(mismatch)
    raise mismatches[-1]


def _decode_dataclass(type: Any, value: Any, place: str) -> Any:
    _expect(isinstance(value, dict), value, "an object", value, place)
    hints = typing.get_type_hints(type)
    members = {}
    for field in dataclasses.fields(type):
        name = _member(field)
        if name in value:
            members[field.name] = _decode(hints[field.name], value[name], _join(place, name))
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise _Mismatch(_join(place, name), "is missing")
    return type(**members)


def _decode_time(value: Any, place: str) -> datetime:
    try:
        # Python 3.10 does not read the Z.
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        raise _Mismatch(place, f"{value!r} is not a time like 2026-01-31T12:00:00Z") from None


def _member(field: dataclasses.Field[Any]) -> str:
    """The member of JSON for a field: `min_ready` is `minReady`, `from_` is `from`."""
    first, *rest = field.name.rstrip("_").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _expect(fits: bool, result: Any, expected: str, value: Any, place: str) -> Any:
    if not fits:
        raise _Mismatch(place, f"{value!r} is not {expected}")
    return result
