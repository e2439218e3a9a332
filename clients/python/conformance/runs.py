"""Runs of the blocking client, and what the asyncio client does likewise."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import grpc
from reports import Left, describe_claim, report_error, report_result
from values import read_value, snake_case

from onceward import (
    BytesCodec,
    DidNotHappen,
    Happened,
    NoEffectError,
    Onceward,
    OutcomeUnknownError,
    Resolution,
    StillOpen,
    TerminalError,
    Unknown,
    aio,
)
from onceward.outgoing import HttpKeys


def perform_runs(case: dict[str, Any]) -> object:
    """Performs the runs of a case. Returns the outcome of each, and what each call of a function saw."""
    client = Onceward(case["address"], owner="conformance", **credential_of(case))
    closing = None
    if "closeAfterMs" in case:
        closing = threading.Timer(case["closeAfterMs"] / 1000, client.close, [case.get("closeTimeoutMs")])
        closing.start()
    performed = Runs(client)
    outcomes = []
    for run in case["runs"]:
        if run.get("closeBefore"):
            client.close()
        outcomes.append(drive(performed.perform(run)))
    if closing is not None:
        closing.join()
    client.close()
    return {"runs": outcomes, "functions": performed.functions, "searches": performed.searches}


async def settled(value: Any) -> Any:
    """Returns what a call of either client returns, which that for asyncio has awaited."""
    return await value if inspect.isawaitable(value) else value


def drive(steps: Coroutine[Any, Any, Any]) -> Any:
    """Does what the blocking client does, which awaits nothing. Returns its value."""
    try:
        steps.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the blocking client awaits nothing")


class Runs:
    """The runs of one client, blocking or not, and what the calls of their functions saw."""

    def __init__(self, client: Onceward | aio.Onceward) -> None:
        self._client: Any = client
        self._blocks = isinstance(client, Onceward)
        self.functions: list[dict[str, Any]] = []
        self.searches: list[dict[str, Any]] = []

    async def perform(self, run: dict[str, Any]) -> object:
        """Performs a run. Returns its outcome."""

        async def function(claim: Any) -> object:
            seen = describe_claim(claim)
            self.functions.append(seen)
            return await perform_steps(run["function"], claim, seen)

        async def resolve(claim: Any) -> object:
            seen = {**describe_claim(claim), "sinceMs": claim.ms_since_effect_may_have_begun}
            self.searches.append(seen)
            steps = run["resolve"][min(len(self.searches), len(run["resolve"])) - 1]
            return await perform_steps(steps, claim, seen)

        namespace, key, options = options_of(run)
        client, keys = self._client, run.get("seen", ())
        if "resolve" in run:
            options["resolve"] = (lambda claim: drive(resolve(claim))) if self._blocks else resolve
        called = (lambda claim: drive(function(claim))) if self._blocks else function
        try:
            with _left_after(run.get("cancelAfterMs")) if self._blocks else nullcontext():
                if len(keys) == 1:
                    return {"seen": [await settled(client.seen(namespace, *keys, **options))]}
                if keys:
                    return {"seen": await settled(client.seen_all(namespace, keys, **options))}
                return report_result(await settled(client.run_detailed(namespace, key, called, **options)))
        except (Exception, Left, SystemExit, asyncio.CancelledError) as error:
            return report_error(error)


@contextmanager
def _left_after(delay_ms: float | None) -> Iterator[None]:
    """Has a handler of a signal raise in the block, as Ctrl-C does."""

    def leave(*_: object) -> None:
        raise Left

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, 0 if delay_ms is None else delay_ms / 1000)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def credential_of(case: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of a client's credential. The last token is given for all later calls."""
    if "tokens" not in case:
        return {"api_key": "conformance"}
    tokens = iter(case["tokens"])

    def token() -> str:
        given: str = next(tokens, case["tokens"][-1])
        if given == "":
            raise LookupError("the issuer is down")
        return given

    return {"token": token}


def options_of(run: dict[str, Any]) -> tuple[str, str, Any]:
    """Returns a run's namespace, key and other options, as Python names them."""
    options = {snake_case(name): value for name, value in run.get("options", {}).items()}
    namespace, key = options.pop("namespace", "charges"), options.pop("key", "order-1")
    if "fingerprint" in options:
        options["fingerprint"] = read_value(options["fingerprint"])
    if options.get("codec") == "bytes":
        options["codec"] = BytesCodec()
    if "terminalErrors" in run:
        options["classify_error"] = lambda error: (
            "terminal" if str(error) in run["terminalErrors"] else "release"
        )
    return namespace, key, options


async def perform_steps(steps: list[dict[str, Any]], claim: Any, seen: dict[str, Any]) -> object:
    """Performs the steps of a function. Returns its value. :raises BaseException: if a step says so."""
    for index, step in enumerate(steps):
        if "saveCheckpoint" in step:
            checkpoint = step["saveCheckpoint"]
            await settled(claim.save_checkpoint(checkpoint["name"], read_value(checkpoint.get("state"))))
        elif "begin" in step:
            await settled(claim.begin())
        elif "awaitLost" in step:
            try:
                await settled(claim.wait_until_lost())
            except (Left, asyncio.CancelledError):
                if len(steps) == index + 1:
                    raise
                seen["lost"] = "cancelled"
                return await perform_steps(steps[index + 1 :], claim, seen)
            seen["lost"] = claim.lost.reason if claim.lost else None
        elif "return" in step:
            return read_value(step["return"])
        elif (found := _resolution_of(step)) is not None:
            return found
        else:
            _perform_other_step(step, claim, seen)
    return None


class ConnectTimeout(TimeoutError):
    """As HTTP libraries name the timeout of a connection that was not made."""


class RpcDeadline(grpc.RpcError):
    """As gRPC raises it."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.DEADLINE_EXCEEDED


_CAUSES = {
    "noEffect": lambda: NoEffectError("no effect"),
    "unknown": lambda: OutcomeUnknownError("unknown"),
    "timeout": lambda: TimeoutError("timeout"),
    "rpcDeadline": RpcDeadline,
    "connectTimeout": lambda: ConnectTimeout("connect timeout"),
}


def _resolution_of(step: dict[str, Any]) -> Resolution | None:
    """Returns the answer of ``resolve`` that a step says; None for another step."""
    if "happened" in step:
        return Happened(read_value(step["happened"]))
    if "stillOpen" in step:
        return StillOpen(step["stillOpen"])
    if "didNotHappen" in step:
        return DidNotHappen()
    return Unknown() if "unknown" in step else None


def _perform_other_step(step: dict[str, Any], claim: Any, seen: dict[str, Any]) -> None:
    """Performs a step that waits for nothing. :raises Exception: if the step says so."""
    if "deriveKey" in step:
        seen["derivedKeys"].append(claim.derive_key(step["deriveKey"]))
    elif "send" in step:
        own = {"idempotency-key": step["send"]["key"]} if "key" in step["send"] else {}
        request = SimpleNamespace(method=step["send"]["method"], url=step["send"]["url"], headers=own)
        seen["derivedKeys"].append(HttpKeys()(request).headers.get("idempotency-key"))
    elif "throw" in step:
        raise RuntimeError(step["throw"])
    elif "throwUnknown" in step:
        raise OutcomeUnknownError(step["throwUnknown"])
    elif "throwNoEffect" in step:
        raise NoEffectError(step["throwNoEffect"])
    elif "throwTimeout" in step:
        raise TimeoutError(step["throwTimeout"])
    elif "throwCaused" in step:
        raise RuntimeError(step["throwCaused"]["message"]) from _CAUSES[step["throwCaused"]["cause"]]()
    elif "markUnknown" in step:
        claim.outcome_unknown(RuntimeError(step["markUnknown"]))
    elif "panic" in step:
        raise SystemExit(step["panic"])
    else:
        terminal = dict(step["throwTerminal"])
        raise TerminalError(terminal.pop("message"), read_value(terminal.pop("details", None)), **terminal)
