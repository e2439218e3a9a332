"""The adapters of the Python clients for clients/conformance: the blocking one, and with --asyncio the other
one.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from typing import Any

from actions import perform_action
from http_operation import perform_http_operation
from messages import perform_messages
from runs import perform_runs
from runs_asyncio import perform_runs_asyncio
from service import perform_service


def outcome_of(case: dict[str, Any], uses_asyncio: bool) -> object:
    """Performs a case's action. Returns its outcome."""
    if case["do"] == "service":
        return perform_service(case)
    if case["do"] == "httpOperation":
        return perform_http_operation(case)
    if case["do"] == "message":
        return perform_messages(case, uses_asyncio)
    if case["do"] != "run":
        return perform_action(case)
    return asyncio.run(perform_runs_asyncio(case)) if uses_asyncio else perform_runs(case)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(outcome_of(json.loads(line), "--asyncio" in sys.argv)), flush=True)
