"""Which errors of a function release its claim, and which leave it to the namespace's policy."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any, NoReturn

import grpc
import pytest

from onceward import (
    AmbiguousError,
    InvalidRequestError,
    NoEffectError,
    Onceward,
    OncewardError,
    OutcomeUnknownError,
)
from onceward.aio import Onceward as AioOnceward
from onceward.testing import TestingOnceward, TestingPolicy

_HOLD = TestingPolicy(on_lease_expiry="HOLD")


def _raised_from(error: BaseException, cause: BaseException | None) -> BaseException:
    """Returns an error with a cause, and without the context of what was being handled."""
    error.__cause__ = cause
    return error


def _raised_while_handling(error: Exception, handled: BaseException, *, hidden: bool = False) -> Exception:
    error.__context__ = handled
    error.__suppress_context__ = hidden
    return error


class ConnectTimeout(Exception):
    """Of an HTTP library."""


class ReadTimeout(Exception):
    """As httpx raises it, whose library hides the socket's TimeoutError."""


class DeadlineOfGrpc(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.DEADLINE_EXCEEDED


class UnavailableOfGrpc(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


_UNKNOWN = [
    ReadTimeout(),
    _raised_from(RuntimeError("a layer"), ReadTimeout()),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    GeneratorExit(),
    asyncio.TimeoutError(),
    concurrent.futures.TimeoutError(),
    concurrent.futures.CancelledError(),
    _raised_from(RuntimeError("two"), _raised_while_handling(ValueError("one"), TimeoutError())),
    _raised_from(
        RuntimeError("a retry"), _raised_from(ConnectTimeout(), _raised_from(OSError(), TimeoutError()))
    ),
    _raised_while_handling(RuntimeError("a layer"), OutcomeUnknownError("the bank timed out"), hidden=True),
    _raised_from(OutcomeUnknownError("the outermost"), NoEffectError("refused")),
    _raised_while_handling(RuntimeError("the handler's own"), NoEffectError("refused"), hidden=False),
]
_RELEASED = [
    UnavailableOfGrpc(),
    _raised_from(OncewardError("NO_ANSWER", "of a nested run"), DeadlineOfGrpc()),
    _raised_from(NoEffectError("never sent"), TimeoutError("no connection")),
    _raised_from(
        OSError("a layer"),
        _raised_from(ConnectTimeout(), _raised_from(TimeoutError(), asyncio.CancelledError())),
    ),
    _raised_from(NoEffectError("looked it up"), OutcomeUnknownError("the bank timed out")),
    _raised_while_handling(RuntimeError("a miss"), TimeoutError("the cache's"), hidden=True),
]
# With on_error="release", an ordinary error whose handler met a NoEffectError is ordinary.
_RELEASED.append(_UNKNOWN.pop())


def _raise(error: BaseException) -> NoReturn:
    raise error


def _run_threads(testing: TestingOnceward, fn: Callable[[Any], Any], **options: Any) -> Any:
    return testing.onceward.run("charges", "order-1", fn, **options)


def _run_aio(testing: TestingOnceward, fn: Callable[[Any], Any], **options: Any) -> Any:
    async def charge(claim: Any) -> Any:
        return fn(claim)

    async def run() -> Any:
        async with testing.aio() as onceward:
            try:
                return await onceward.run("charges", "order-1", charge, **options)
            except BaseException as error:
                # An event loop does not pass a SystemExit on as it does other errors.
                return error

    outcome = asyncio.run(run())
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _is_unknown(testing: TestingOnceward) -> bool:
    """Returns whether the outcome is unknown, once the lease is over."""
    testing.advance(30_000)
    try:
        testing.onceward.run("charges", "order-1", lambda _: "again")
    except AmbiguousError:
        return True
    return False


@pytest.mark.parametrize("run", [_run_threads, _run_aio])
@pytest.mark.parametrize(
    ("error", "unknown"),
    [(each, True) for each in _UNKNOWN] + [(each, False) for each in _RELEASED],
    ids=repr,
)
def test_an_error_releases_the_claim_unless_the_effect_may_have_happened(
    run: Callable[..., Any], error: BaseException, unknown: bool
) -> None:
    with TestingOnceward(policy=_HOLD) as testing:
        with pytest.raises(type(error)) as raised:
            run(testing, lambda _: _raise(error))
        assert raised.value is error
        assert _is_unknown(testing) is unknown


@pytest.mark.parametrize("client", [Onceward, AioOnceward])
def test_another_word_for_on_error_is_refused(client: Any) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        client("http://localhost:1", api_key="key", on_error="ignore")
    assert [each.field for each in refused.value.violations] == ["on_error"]


def test_what_the_caller_of_a_run_handles_says_nothing_about_the_function() -> None:
    with TestingOnceward(policy=_HOLD) as testing:
        try:
            _raise(OutcomeUnknownError("of an earlier operation"))
        except OutcomeUnknownError:
            with pytest.raises(RuntimeError):
                _run_threads(testing, lambda _: _raise(RuntimeError("refused")))
            with pytest.raises(RuntimeError), testing.onceward.claim("charges", "order-1"):
                raise RuntimeError("refused") from None
        assert not _is_unknown(testing)


# Python 3.10 does not tell a task that its caller left.
@pytest.mark.parametrize("hides", [False, True] if hasattr(asyncio.Task, "cancelling") else [False])
def test_a_run_that_is_cancelled_leaves_the_outcome_unknown(hides: bool) -> None:
    async def cancel(testing: TestingOnceward) -> None:
        async with testing.aio() as onceward:
            begun = asyncio.Event()

            async def charge(_: Any) -> None:
                begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if hides:
                        raise RuntimeError("stopped") from None
                    raise

            running = asyncio.ensure_future(onceward.run("charges", "order-1", charge))
            await begun.wait()
            running.cancel()
            with pytest.raises(RuntimeError if hides else asyncio.CancelledError):
                await running

    with TestingOnceward(policy=_HOLD) as testing:
        asyncio.run(cancel(testing))
        assert _is_unknown(testing)


@pytest.mark.parametrize(("released", "marks"), [(True, False), (False, False), (False, True)])
def test_a_block_that_ends_without_complete_leaves_the_outcome_unknown_unless_released_or_not_begun(
    released: bool, marks: bool
) -> None:
    def leave_early(onceward: Onceward) -> None:
        with onceward.claim("charges", "order-1", marks_begin=marks) as scope:
            if released:
                scope.release()
                with pytest.raises(RuntimeError):
                    scope.complete("too late")
            return

    async def leave_early_aio(onceward: AioOnceward) -> None:
        async with onceward, onceward.claim("charges", "order-1", marks_begin=marks) as scope:
            if released:
                await scope.release()
            return

    with TestingOnceward(policy=_HOLD) as testing:
        leave_early(testing.onceward)
        assert _is_unknown(testing) is not (released or marks)
    with TestingOnceward(policy=_HOLD) as testing:
        asyncio.run(leave_early_aio(testing.aio()))
        assert _is_unknown(testing) is not (released or marks)


def test_a_mark_that_nothing_would_await_is_refused_before_the_effect() -> None:
    async def run() -> None:
        with TestingOnceward() as testing:
            async with AioOnceward(testing.address, api_key="any") as onceward:

                async def fn(claim: Any) -> None:
                    with pytest.raises(RuntimeError, match="from_thread"):
                        await asyncio.to_thread(claim.begin)
                    await claim.begin()

                await onceward.run("charges", "k", fn, marks_begin=True)

    asyncio.run(run())
