"""Values of other types than JSON has: stored, restored, or refused before the effect."""

import asyncio
import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict, Union
from uuid import UUID

import pydantic
import pytest

from onceward import CompletionError, InvalidRequestError, Onceward, fingerprint_of
from onceward.testing import TestingOnceward


class Line(pydantic.BaseModel):
    cents: Decimal
    at: datetime = pydantic.Field(alias="madeAt")


@dataclass
class Charge:
    id: UUID
    lines: list[Line]
    parent: "Charge | None" = None
    note: str | None = None


class Point(NamedTuple):
    x: int
    at: date


class Row(TypedDict):
    id: str
    at: time


Id = NewType("Id", UUID)
Json = Union[dict[str, "Json"], list["Json"], str, int, None]  # noqa: UP007

_NOW = datetime(2026, 3, 1, 11, 30, tzinfo=timezone(timedelta(hours=5)))
_ID = UUID(int=7)
_LINE = Line(cents=Decimal("1.10"), madeAt=_NOW)
_VALUES: list[tuple[Any, Any]] = [
    (Line, _LINE),
    (Charge, Charge(_ID, [_LINE], Charge(_ID, []), "n")),
    (datetime, _NOW),
    (datetime, _NOW.replace(tzinfo=None)),
    (date, _NOW.date()),
    (time, _NOW.time()),
    (Decimal, Decimal("1.10")),
    (UUID, _ID),
    (Id, _ID),
    (Union[UUID, None], None),  # noqa: UP007
    (UUID | None, _ID),
    (Annotated[UUID, "key"], _ID),
    (list[Charge], [Charge(_ID, [])]),
    (dict[str, Line], {"a": _LINE}),
    (tuple[Decimal, ...], (Decimal(1), Decimal(2))),
    (tuple[str, date], ("a", _NOW.date())),
    (tuple, ("a", 1)),
    (Point, Point(1, _NOW.date())),
    (Row, {"id": "a", "at": _NOW.time()}),
    (pydantic.TypeAdapter(list[Line] | int), [_LINE]),
    (dict[str, list[int | None]], {"a": [1, None]}),
    (Literal["a", "b"], "a"),
    (pydantic.JsonValue, {"a": [1, None]}),
    (Json, {"a": [1, None]}),
    (Iterable[date], [_NOW.date()]),
    (None, None),
]


@pytest.mark.parametrize(("kind", "value"), _VALUES, ids=[str(kind) for kind, _ in _VALUES])
def test_a_value_is_restored_as_its_type(kind: Any, value: Any) -> None:
    with TestingOnceward() as testing:
        for _ in range(2):
            got = testing.onceward.run("charges", "order-1", lambda _: value, returns=kind)
            assert got == value and type(got) is type(value)


def test_the_annotation_of_a_function_says_its_type() -> None:
    with TestingOnceward() as testing:

        @testing.onceward.once("charges", key=str)
        def charge(order: str) -> Charge:
            return Charge(_ID, [])

        assert [charge("order-1"), charge("order-1")] == [Charge(_ID, [])] * 2

        async def refund() -> None:
            async with testing.aio() as onceward:

                @onceward.once("refunds", key=str)
                async def refund(order: str) -> Line:
                    return _LINE

                assert [await refund("order-1"), await refund("order-1")] == [_LINE, _LINE]

        asyncio.run(refund())


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Late:
    id: str
    total: int = field(init=False)


class Opaque:
    pass


@pytest.mark.parametrize(
    "kind",
    [
        bytes,
        set[str],
        frozenset,
        Colour,
        dict[int, str],
        Opaque,
        list[Opaque],
        bytes | None,
        Line | Charge,
        UUID | str,
        complex,
        timedelta,
        Late,
    ],
    ids=str,
)
def test_a_type_that_can_not_be_stored_is_refused_before_anything_runs(kind: Any) -> None:
    def charge(order: str) -> Any:
        raise AssertionError

    charge.__annotations__["return"] = kind
    onceward = Onceward("http://localhost:1", api_key="key")
    with pytest.raises(InvalidRequestError) as refused:
        onceward.once("charges", key=str)(charge)
    assert [each.field for each in refused.value.violations] == ["returns"]
    with pytest.raises(InvalidRequestError):
        onceward.run("charges", "order-1", lambda _: charge(""), returns=kind)


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", "1": "b"},
        {None: 1},
        [{"cents": 2**70}],
        b"a",
        {1},
        Colour.RED,
        Decimal(1),
    ],
)
def test_a_value_that_json_would_change_is_not_stored(value: Any) -> None:
    with TestingOnceward() as testing, pytest.raises(CompletionError) as raised:
        testing.onceward.run("charges", "order-1", lambda _: value)
    assert (raised.value.reason, raised.value.stored) == ("RESULT_NOT_JSON", True)


def test_a_dataclass_or_a_model_counts_as_its_members() -> None:
    members = {"id": str(_ID), "lines": [{"cents": "1.10", "at": _NOW}], "parent": None, "note": None}
    assert fingerprint_of(Charge(_ID, [_LINE])) == fingerprint_of(members)
