"""Makes one delivery of an operation, for test/tools/client-crashes, which kills it at any moment.

It prints "ready", reads what to deliver as a line of JSON, has an effect by HTTP, and prints the outcome.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

from onceward import Claim, Onceward, OncewardError


def have_effect(url: str, claim: Claim) -> Any:
    """Has the effect. Returns its number."""
    effect = {
        "key": claim.key,
        "derivedKey": claim.derive_key("bank"),
        "attempt": claim.attempt,
        "fencingToken": claim.fencing_token,
    }
    request = urllib.request.Request(url, json.dumps(effect).encode(), method="POST")
    with urllib.request.urlopen(request) as response:
        return json.load(response)


if __name__ == "__main__":
    print("ready", flush=True)
    given = json.loads(sys.stdin.readline())
    client = Onceward(given["address"], api_key=given["apiKey"])
    try:
        result = client.run_detailed(
            given["namespace"],
            given["key"],
            lambda claim: have_effect(given["effectUrl"], claim),
            lease_ms=given["leaseMs"],
            accept_ambiguous=given["acceptAmbiguous"],
        )
        print(json.dumps({"value": result.value, "replayed": result.replayed}), flush=True)
    except OncewardError as error:
        print(json.dumps({"value": 0, "replayed": False, "reason": error.reason}), flush=True)
