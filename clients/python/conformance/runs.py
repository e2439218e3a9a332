"""Runs of the blocking client."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import grpc
from reports import Left, describe_claim, report_error, report_result
from values import read_value, snake_case

from onceward import (
    BytesCodec,
    Claim,
    DidNotHappen,
    Happened,
    NoEffectError,
    Onceward,
    OutcomeUnknownError,
    Resolution,
    StillOpen,
    TerminalError,
    Unknown,
)
from onceward.outgoing import HttpKeys


def perform_runs(case: dict[str, Any]) -> object:
    """Performs the runs of a case. Returns the outcome of each, and what each call of a function saw."""
    warnings.simplefilter("ignore")
    client = Onceward(case["address"], owner="conformance", **credential_of(case))
    closing = None
    if "closeAfterMs" in case:
        closing = threading.Timer(case["closeAfterMs"] / 1000, client.close, [case.get("closeTimeoutMs")])
        closing.start()
    functions: list[dict[str, Any]] = []
    searches: list[dict[str, Any]] = []
    outcomes = []
    for run in case["runs"]:
        if run.get("closeBefore"):
            client.close()
        outcomes.append(_perform_run(client, run, functions, searches))
    if closing is not None:
        closing.join()
    client.close()
    return {"runs": outcomes, "functions": functions, "searches": searches}


def _perform_run(
    client: Onceward, run: dict[str, Any], functions: list[dict[str, Any]], searches: list[dict[str, Any]]
) -> object:
    def function(claim: Claim) -> object:
        seen = describe_claim(claim)
        functions.append(seen)
        return _perform_steps(run["function"], claim, seen)

    def resolve(claim: Claim) -> object:
        seen = {**describe_claim(claim), "sinceMs": claim.ms_since_effect_may_have_begun}
        searches.append(seen)
        steps = run["resolve"][min(len(searches), len(run["resolve"])) - 1]
        return _perform_steps(steps, claim, seen)

    namespace, key, options = options_of(run)
    if "resolve" in run:
        options["resolve"] = resolve
    try:
        with _left_after(run.get("cancelAfterMs")):
            if "seen" in run:
                keys = run["seen"]
                one = len(keys) == 1
                return {
                    "seen": [client.seen(namespace, *keys, **options)]
                    if one
                    else client.seen_all(namespace, keys, **options)
                }
            return report_result(client.run_detailed(namespace, key, function, **options))
    except (Exception, Left, SystemExit) as error:
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


def _perform_steps(steps: list[dict[str, Any]], claim: Claim, seen: dict[str, Any]) -> object:
    for index, step in enumerate(steps):
        if "saveCheckpoint" in step:
            claim.save_checkpoint(
                step["saveCheckpoint"]["name"], read_value(step["saveCheckpoint"].get("state"))
            )
        elif "begin" in step:
            claim.begin()
        elif "awaitLost" in step:
            try:
                claim.wait_until_lost()
            except Left:
                if len(steps) == index + 1:
                    raise
                seen["lost"] = "cancelled"
                return _perform_steps(steps[index + 1 :], claim, seen)
            seen["lost"] = claim.lost.reason if claim.lost else None
        elif "return" in step:
            return read_value(step["return"])
        elif (found := resolution_of(step)) is not None:
            return found
        else:
            perform_other_step(step, claim, seen)
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


def resolution_of(step: dict[str, Any]) -> Resolution | None:
    """Returns the answer of ``resolve`` that a step says; None for another step."""
    if "happened" in step:
        return Happened(read_value(step["happened"]))
    if "stillOpen" in step:
        return StillOpen(step["stillOpen"])
    if "didNotHappen" in step:
        return DidNotHappen()
    return Unknown() if "unknown" in step else None


def perform_other_step(step: dict[str, Any], claim: Any, seen: dict[str, Any]) -> None:
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
