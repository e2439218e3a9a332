"""Runs of the asyncio client."""

from __future__ import annotations

import asyncio
from typing import Any

from runs import Runs, credential_of

from onceward.aio import Onceward


async def perform_runs_asyncio(case: dict[str, Any]) -> object:
    """Performs the runs of a case. Returns the outcome of each, and what each call of a function saw."""
    client = Onceward(case["address"], owner="conformance", **credential_of(case))
    closing = asyncio.ensure_future(_close_early(client, case)) if "closeAfterMs" in case else None
    performed = Runs(client)
    outcomes = []
    for run in case["runs"]:
        if run.get("closeBefore"):
            await client.close()
        # Not awaited as a coroutine: a run is cancelled as a task of its own.
        running = asyncio.ensure_future(performed.perform(run))
        if "cancelAfterMs" in run:
            asyncio.get_running_loop().call_later(run["cancelAfterMs"] / 1000, running.cancel)
        outcomes.append(await running)
    if closing is not None:
        await closing
    await client.close()
    return {"runs": outcomes, "functions": performed.functions, "searches": performed.searches}


async def _close_early(client: Onceward, case: dict[str, Any]) -> None:
    await asyncio.sleep(case["closeAfterMs"] / 1000)
    await client.close(case.get("closeTimeoutMs"))
