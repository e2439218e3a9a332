"""Makes one delivery of an operation, for test/tools/client-crashes, which ends it at any moment.

It prints "ready", reads what to deliver as a line of JSON, has an effect by HTTP, and prints the outcome.
With --asyncio, by the asyncio client.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import urllib.request
from typing import Any

from onceward import Claim, Onceward, OncewardError, RunResult, aio


def have_effect(given: Any, claim: Claim | aio.Claim) -> Any:
    """Has the effect. Returns its number."""
    effect = {
        "key": claim.key,
        "derivedKey": claim.derive_key("bank"),
        "attempt": claim.attempt,
        "fencingToken": claim.fencing_token,
    }
    request = urllib.request.Request(given["effectUrl"], json.dumps(effect).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=given["timeLimitMs"] / 1000) as response:
        number = json.load(response)
    if claim.lost is not None:
        raise RuntimeError("stopped")
    return number


def deliver(given: Any) -> RunResult[Any]:
    """Delivers by the blocking client, whose function the handler of a signal ends."""
    client = Onceward(given["address"], api_key=given["apiKey"])

    def leave(*_: object) -> None:
        if given["interruption"] == "cancel":
            raise SystemExit
        threading.Thread(target=client.close, args=(0,), daemon=True).start()

    signal.signal(signal.SIGTERM, leave)
    return client.run_detailed(
        given["namespace"],
        given["key"],
        lambda claim: have_effect(given, claim),
        lease_ms=given["leaseMs"],
        accept_ambiguous=given["acceptAmbiguous"],
    )


async def deliver_async(given: Any) -> RunResult[Any]:
    """Delivers by the asyncio client, whose task is cancelled."""
    client = aio.Onceward(given["address"], api_key=given["apiKey"])
    running = asyncio.ensure_future(
        client.run_detailed(
            given["namespace"],
            given["key"],
            lambda claim: asyncio.to_thread(have_effect, given, claim),
            lease_ms=given["leaseMs"],
            accept_ambiguous=given["acceptAmbiguous"],
        )
    )

    def leave() -> None:
        if given["interruption"] == "cancel":
            running.cancel()
        else:
            closing.append(asyncio.ensure_future(client.close(0)))

    closing: list[asyncio.Future[None]] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
    return await running


def main() -> None:
    """Prints the outcome of the delivery."""
    print("ready", flush=True)
    given = json.loads(sys.stdin.readline())
    try:
        result = asyncio.run(deliver_async(given)) if "--asyncio" in sys.argv else deliver(given)
        outcome = {"value": result.value, "replayed": result.replayed}
    except OncewardError as error:
        outcome = {"value": 0, "replayed": False, "reason": error.reason}
    except BaseException:
        outcome = {"value": 0, "replayed": False, "reason": "INTERRUPTED"}
    print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
