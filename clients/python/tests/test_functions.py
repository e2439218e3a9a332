"""Functions whose call is not yet their effect are refused, so that they are not stored as done."""

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mypy import api

from onceward import AmbiguousError
from onceward.testing import TestingOnceward, TestingPolicy


async def _coroutine(*_: object) -> str:
    return "charged"


def _generator(*_: object) -> Iterator[str]:
    yield "charged"


async def _async_generator(*_: object) -> AsyncIterator[str]:
    yield "charged"


class _Called:
    async def __call__(self, *_: object) -> str:
        return "charged"


_LAZY = [_coroutine, _generator, _async_generator, functools.partial(_coroutine, 1), _Called()]


@pytest.mark.parametrize("fn", _LAZY)
def test_the_blocking_client_refuses_a_function_whose_call_does_not_run_it(fn: Any) -> None:
    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        onceward = testing.onceward
        with pytest.raises(TypeError, match="function"):
            onceward.once("charges", key=str)(fn)
        with pytest.raises(TypeError, match="function"):
            onceward.run("charges", "order-1", fn)
        with pytest.raises(TypeError, match="returned a"):
            onceward.run("charges", "order-1", lambda claim: fn(claim))
        assert onceward.run("charges", "order-1", lambda claim: claim.attempt) == 2


@pytest.mark.parametrize("fn", [_generator, _async_generator])
def test_the_asyncio_client_refuses_generator_functions(fn: Any) -> None:
    async def run(testing: TestingOnceward) -> None:
        async with testing.aio() as onceward:
            with pytest.raises(TypeError, match="generator function"):
                onceward.once("charges", key=str)(fn)
            with pytest.raises(TypeError, match="generator function"):
                await onceward.run("charges", "order-1", fn)
            for lazy in fn, _coroutine:

                async def charge(claim: Any, lazy: Any = lazy) -> Any:
                    return lazy(claim)

                with pytest.raises(TypeError, match="returned a"):
                    await onceward.run("charges", "order-1", charge)
            assert await onceward.run("charges", "order-1", _coroutine) == "charged"

    with TestingOnceward() as testing:
        asyncio.run(run(testing))


def test_an_awaitable_that_may_run_elsewhere_leaves_the_outcome_unknown() -> None:
    async def begin(testing: TestingOnceward) -> None:
        task = asyncio.ensure_future(_coroutine())
        with pytest.raises(TypeError):
            await asyncio.to_thread(testing.onceward.run, "charges", "order-1", lambda _: task)
        await task

    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        asyncio.run(begin(testing))
        testing.advance(30_000)
        with pytest.raises(AmbiguousError):
            testing.onceward.run("charges", "order-1", lambda _: "again")


_PROGRAM = """
from onceward import Claim, Onceward

onceward = Onceward("http://localhost:1", api_key="key")

async def charge(claim: Claim) -> str:
    return "charged"

@onceward.once("charges", key=str)
async def pay(order: str) -> str:
    return order

@onceward.once("charges", key=str)
def refund(order: str) -> str:
    return order

good: str = onceward.run("charges", "order-1", lambda claim: claim.key)
refunded: str = refund("order-1")
bad: str = onceward.run("charges", "order-1", charge)
pay("order-1")
"""


def test_mypy_refuses_coroutine_functions_in_the_blocking_client(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    printed, _, _ = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(program)])
    lines = _PROGRAM.splitlines()
    refused = [lines[int(line.split(":")[1]) - 1] for line in printed.splitlines() if ": error:" in line]
    assert refused == lines[-2:], printed
