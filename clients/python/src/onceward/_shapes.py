"""Values of other types than JSON has, by the type that a function returns."""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
import typing
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypeVar, Union
from uuid import UUID

from ._catalogue import InvalidRequestError
from ._codec import Codec, Encoded, JsonCodec
from ._texts import refused_field

_JSON = JsonCodec()
#: What pydantic reads again.
_DUMP: Any = {"mode": "json", "by_alias": True, "round_trip": True}


@dataclasses.dataclass(frozen=True)
class _Shape:
    """How the values of a type are written as JSON, and read."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_PLAIN = _Shape(lambda value: value, lambda value: value)
_TEXTS = {
    datetime: _Shape(datetime.isoformat, datetime.fromisoformat),
    date: _Shape(date.isoformat, date.fromisoformat),
    time: _Shape(time.isoformat, time.fromisoformat),
    Decimal: _Shape(str, Decimal),
    UUID: _Shape(str, UUID),
}
_LISTS = (list, Sequence, MutableSequence, Collection, Iterable)
_DICTS = (dict, Mapping, MutableMapping)
_Known = dict[Any, _Shape]


class TypedCodec:
    """Stores values of one type as JSON, and restores them."""

    def __init__(self, shape: _Shape) -> None:
        self._shape = shape

    def encode(self, value: Any) -> Encoded:
        """Returns the value as JSON."""
        return _JSON.encode(self._shape.write(value))

    def decode(self, stored: Encoded) -> Any:
        """Returns the value of JSON."""
        return self._shape.read(_JSON.decode(stored))


def codec_of(returns: Any) -> Codec:
    """Returns the codec for values of a type. :raises InvalidRequestError: for one that can't be stored."""
    if hasattr(returns, "dump_python") and hasattr(returns, "validate_python"):
        return TypedCodec(_Shape(lambda value: returns.dump_python(value, **_DUMP), returns.validate_python))
    shape = _shape_of(returns, {})
    return _JSON if shape is _PLAIN else TypedCodec(shape)


def codec_of_function(fn: Callable[..., Any]) -> Codec | None:
    """Returns the codec for the annotated values of a function; None if it says nothing about them.

    :raises InvalidRequestError: for a type that can't be stored.
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    names = getattr(fn, "__globals__", None) or getattr(sys.modules.get(fn.__module__), "__dict__", {})

    def annotated() -> None: ...

    annotated.__annotations__ = {"return": getattr(fn, "__annotations__", {}).get("return", Any)}
    try:
        annotation = typing.get_type_hints(annotated, names)["return"]
    except NameError:
        # Of a local class, or one that is imported for type checkers only.
        return None
    if typing.get_origin(annotation) in (Awaitable, Coroutine):
        annotation = typing.get_args(annotation)[-1]
    return codec_of(annotation)


def _shape_of(kind: Any, known: _Known) -> _Shape:
    kind = _resolved(kind)
    if _is_plain(kind, set()):
        return _PLAIN
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return _union(kind, args, known)
    if kind in _TEXTS:
        return _checked(kind, _TEXTS[kind])
    made = origin or kind
    if not isinstance(made, type):
        raise _refused(kind)
    if kind not in known:
        # A class that has itself as a member.
        known[kind] = _Shape(lambda value: known[kind].write(value), lambda value: known[kind].read(value))
        known[kind] = _class(kind, made, args, known)
    return known[kind]


def _resolved(kind: Any) -> Any:
    """Returns the type of an alias, a NewType or an Annotated."""
    while True:
        if hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        elif typing.get_origin(kind) is typing.Annotated:
            kind = typing.get_args(kind)[0]
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        else:
            return kind


def _is_plain(kind: Any, seen: set[Any]) -> bool:
    """Returns whether JSON has the values as they are; also of a type that says nothing about them."""
    kind = _resolved(kind)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in (Any, None, object, typing.NoReturn) or origin is Literal:
        return True
    if isinstance(kind, (TypeVar, str, typing.ForwardRef)) or kind in seen:
        return True
    within = {*seen, kind}
    if origin in (Union, types.UnionType):
        return all(_is_plain(each, within) for each in args)
    made = origin or kind
    if not isinstance(made, type) or issubclass(made, (Enum, tuple)):
        return False
    if typing.is_typeddict(made):
        return all(_is_plain(each, within) for each in _hints_of(made).values())
    if made in _LISTS:
        return all(_is_plain(each, within) for each in args)
    if made in _DICTS:
        return not args or (_resolved(args[0]) in (str, Any) and _is_plain(args[1], within))
    return issubclass(made, (bool, int, float, str, list, dict, type(None)))


def _class(kind: Any, made: type, args: tuple[Any, ...], known: _Known) -> _Shape:
    if hasattr(made, "model_dump") and hasattr(made, "model_validate"):
        model: Any = kind
        return _checked(made, _Shape(lambda value: value.model_dump(**_DUMP), model.model_validate))
    if dataclasses.is_dataclass(made):
        return _dataclass(made, known)
    if typing.is_typeddict(made):
        return _members({name: _shape_of(hint, known) for name, hint in _hints_of(made).items()})
    if issubclass(made, tuple):
        return _tuple(made, args, known)
    if made in _DICTS and args and _resolved(args[0]) in (str, Any):
        return _each_member(_shape_of(args[1], known))
    if made in _LISTS:
        return _each(list, _shape_of(args[0], known))
    raise _refused(kind)


def _checked(kind: type, shape: _Shape) -> _Shape:
    def write(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"the value is a {type(value).__name__}, not a {kind.__name__}")
        return shape.write(value)

    return _Shape(write, shape.read)


def _union(kind: Any, args: tuple[Any, ...], known: _Known) -> _Shape:
    kinds = [each for each in args if each is not type(None)]
    if len(kinds) > 1:
        # Nothing in JSON says which of them a value was.
        raise _refused(kind)
    shape = _shape_of(kinds[0], known)
    return _Shape(
        lambda value: None if value is None else shape.write(value),
        lambda value: None if value is None else shape.read(value),
    )


def _dataclass(made: type, known: _Known) -> _Shape:
    hints = _hints_of(made)
    fields = [each.name for each in dataclasses.fields(made) if each.init]
    if len(fields) < len(dataclasses.fields(made)):
        raise _refused(made)
    members = _members({name: _shape_of(hints[name], known) for name in fields})
    return _checked(
        made,
        _Shape(
            lambda value: members.write({name: getattr(value, name) for name in fields}),
            lambda value: made(**members.read(value)),
        ),
    )


def _members(shapes: Mapping[str, _Shape]) -> _Shape:
    return _Shape(
        lambda value: {name: shapes.get(name, _PLAIN).write(each) for name, each in value.items()},
        lambda value: {name: shapes.get(name, _PLAIN).read(each) for name, each in value.items()},
    )


def _each_member(shape: _Shape) -> _Shape:
    return _Shape(
        lambda value: {name: shape.write(each) for name, each in value.items()},
        lambda value: {name: shape.read(each) for name, each in value.items()},
    )


def _each(make: Callable[[Any], Any], shape: _Shape) -> _Shape:
    return _Shape(
        lambda value: [shape.write(each) for each in value],
        lambda value: make(shape.read(each) for each in value),
    )


def _tuple(made: type, args: tuple[Any, ...], known: _Known) -> _Shape:
    if hasattr(made, "_fields"):
        hints = _hints_of(made)
        args = tuple(hints.get(name, Any) for name in made._fields)
        return _each_of([_shape_of(each, known) for each in args], lambda values: made(*values))
    if not args or args[-1] is Ellipsis:
        return _each(tuple, _shape_of(args[0], known) if args else _PLAIN)
    return _each_of([_shape_of(each, known) for each in args], tuple)


def _each_of(shapes: list[_Shape], make: Callable[[Any], Any]) -> _Shape:
    return _Shape(
        lambda value: [shape.write(each) for shape, each in zip(shapes, value, strict=True)],
        lambda value: make([shape.read(each) for shape, each in zip(shapes, value, strict=True)]),
    )


def _hints_of(made: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(made)
    except NameError as error:
        description = f"{made.__qualname__} has an annotation that is not defined here: {error}"
        raise refused_field("returns", description) from error


def _refused(kind: Any) -> InvalidRequestError:
    name = kind.__qualname__ if isinstance(kind, type) else str(kind)
    return refused_field(
        "returns",
        f"must be a type of JSON, a dataclass, a pydantic model, a date or time, Decimal or UUID, "
        f"is or has {name[:256]}; return another type, or set codec",
    )
