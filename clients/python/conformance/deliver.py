"""A worker, for test/lab/outcomes, which ends it at any moment.

It reads its setup, prints "ready", reads deliveries as lines of JSON, charges at a provider, and prints
outcomes. With --asyncio, by the asyncio client.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import onceward
from onceward import (
    DidNotHappen,
    Happened,
    NoEffectError,
    Onceward,
    OncewardError,
    OutcomeUnknownError,
    Resolution,
    StillOpen,
    Unknown,
    aio,
)

AnyClaim = onceward.BaseClaim
#: Longer than a provider takes between a request and its charge, on a machine that is busy.
LONGEST_CHARGE_MS = 1000
RETRY_AFTER_MS = 200
#: The deliveries that the blocking client makes at once.
THREADS = 32


def key_of(provider: Any, claim: AnyClaim, attempt: int) -> str:
    """Returns the key of an attempt's charge: its own where an earlier one's is cancelled."""
    return claim.derive_key(f"charge {attempt}" if provider["kind"] == "cancel" else "charge")


def ask(provider: Any, method: str, path: str, body: Any = None, timeout_s: float = 60) -> tuple[int, Any]:
    """Calls the provider. Returns the status and the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{provider['url']}/charges{path}", data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, None


def post(provider: Any, claim: AnyClaim, timeout_s: float = 60) -> tuple[int, Any]:
    """Asks for a charge. Returns the status and the answer."""
    charge = {
        "operation": claim.key,
        "key": key_of(provider, claim, claim.attempt),
        "attempt": claim.attempt,
        "fencingToken": claim.fencing_token,
    }
    return ask(provider, "POST", "", charge, timeout_s)


def resolve_by_stored_answer(provider: Any, claim: AnyClaim) -> Resolution:
    """A second call answers as the first."""
    status, charge = post(provider, claim)
    if status == 409:
        return StillOpen(RETRY_AFTER_MS)
    return Happened(charge["id"]) if status == 200 else Unknown()


def resolve_by_latest_status(provider: Any, claim: AnyClaim) -> Resolution:
    """A key has a status."""
    status, charge = ask(provider, "GET", f"/{key_of(provider, claim, claim.attempt)}")
    if status == 404:
        return DidNotHappen()
    return Happened(charge["id"]) if charge["status"] == "succeeded" else StillOpen(RETRY_AFTER_MS)


def resolve_by_cancel(provider: Any, claim: AnyClaim) -> Resolution:
    """Every earlier attempt is cancelled."""
    for attempt in range(1, claim.attempt):
        status, _ = ask(provider, "DELETE", f"/{key_of(provider, claim, attempt)}")
        if status != 200:
            return Unknown()
    return DidNotHappen()


def resolve_by_search(provider: Any, claim: AnyClaim) -> Resolution:
    """A search finds a charge after its lag."""
    _, found = ask(provider, "GET", f"?key={key_of(provider, claim, claim.attempt)}")
    if found:
        return Happened(found[0]["id"])
    is_certain = claim.ms_since_effect_may_have_begun > provider["lagMs"] + LONGEST_CHARGE_MS
    return DidNotHappen() if is_certain else StillOpen(RETRY_AFTER_MS)


RESOLVE: dict[str, Callable[[Any, AnyClaim], Resolution]] = {
    "stored-answer": resolve_by_stored_answer,
    "latest-status": resolve_by_latest_status,
    "cancel": resolve_by_cancel,
    "search": resolve_by_search,
}


class Delivery:
    """One delivery of an operation."""

    def __init__(self, setup: Any, line: str) -> None:
        self.setup, self.given, self.looked = setup, json.loads(line), False
        self.provider, self.name = self.given["provider"], (self.given["namespace"], self.given["key"])
        self.options: dict[str, Any] = {"lease_ms": setup["leaseMs"], "wait_ms": 0}
        self.options["marks_begin"] = setup["marksBegin"]
        if self.provider["kind"] in RESOLVE:
            self.options |= {"on_error": "unknown", "resolve": self.resolve}

    def reach(self, moment: str) -> None:
        """Ends this process if the delivery is to die here."""
        if self.given.get("dieAt") == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def resolve(self, claim: AnyClaim) -> Resolution:
        """Finds out what became of an earlier attempt."""
        self.looked = True
        self.reach("while it looks")
        return RESOLVE[self.provider["kind"]](self.provider, claim)

    def charge(self, claim: AnyClaim) -> Any:
        """Charges. Returns the charge's id."""
        self.reach("before the call")
        if claim.lost is not None:
            raise NoEffectError from claim.lost
        status, charge = post(self.provider, claim, self.setup["timeLimitMs"] / 1000)
        if status == 503:
            raise NoEffectError
        if status != 200 or charge["status"] != "succeeded":
            raise OutcomeUnknownError
        self.reach("before the completion")
        return charge["id"]

    def end(self, outcome: Any) -> None:
        """Prints the outcome: a value or an error."""
        self.reach("after the completion")
        printed = {"id": self.given["id"], "looked": self.looked}
        if isinstance(outcome, BaseException):
            printed["reason"] = outcome.reason if isinstance(outcome, OncewardError) else "INTERRUPTED"
        else:
            printed["value"] = outcome
        sys.stdout.write(f"{json.dumps(printed)}\n")
        sys.stdout.flush()


def work(setup: Any) -> None:
    """Delivers by the blocking client."""
    client = Onceward(setup["address"], api_key=setup["apiKey"])

    def deliver(delivery: Delivery) -> None:
        delivery.reach("before the claim")

        def charge(claim: onceward.Claim) -> Any:
            delivery.reach("before it begins")
            claim.begin()
            return delivery.charge(claim)

        try:
            delivery.end(client.run(*delivery.name, charge, **delivery.options))
        except BaseException as error:
            delivery.end(error)

    def leave(*_: object) -> None:
        threading.Thread(target=client.close, args=(0,), daemon=True).start()

    signal.signal(signal.SIGTERM, leave)
    print("ready", flush=True)
    with ThreadPoolExecutor(THREADS) as threads:
        for line in sys.stdin:
            threads.submit(deliver, Delivery(setup, line))


async def work_async(setup: Any) -> None:
    """Delivers by the asyncio client, which is closed, or whose tasks are cancelled."""
    client = aio.Onceward(setup["address"], api_key=setup["apiKey"])
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    tasks: set[asyncio.Task[None]] = set()

    async def deliver(delivery: Delivery) -> None:
        options = dict(delivery.options)
        if "resolve" in options:
            options["resolve"] = lambda claim: asyncio.to_thread(delivery.resolve, claim)
        delivery.reach("before the claim")

        async def charge(claim: aio.Claim) -> Any:
            delivery.reach("before it begins")
            await claim.begin()
            return await asyncio.to_thread(delivery.charge, claim)

        try:
            delivery.end(await client.run(*delivery.name, charge, **options))
        except BaseException as error:
            delivery.end(error)

    def leave() -> None:
        if setup["interruption"] == "close":
            tasks.add(asyncio.ensure_future(client.close(0)))
            return
        for task in tasks:
            # After its first step: a task that is cancelled before would print nothing.
            loop.call_soon(task.cancel)

    loop.add_signal_handler(signal.SIGTERM, leave)
    print("ready", flush=True)
    reader = ThreadPoolExecutor(1)
    while line := await loop.run_in_executor(reader, sys.stdin.readline):
        task = asyncio.ensure_future(deliver(Delivery(setup, line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def main() -> None:
    """Delivers until it is ended."""
    setup = json.loads(sys.stdin.readline())
    if "--asyncio" in sys.argv:
        asyncio.run(work_async(setup))
    else:
        work(setup)


if __name__ == "__main__":
    main()
