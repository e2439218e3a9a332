"""Runs of the asyncio client."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

from reports import describe_claim, report_error, report_result
from runs import credential_of, options_of, perform_other_step, resolution_of
from values import read_value

from onceward.aio import Claim, Onceward


async def perform_runs_asyncio(case: dict[str, Any]) -> object:
    """Performs the runs of a case. Returns the outcome of each, and what each call of a function saw."""
    warnings.simplefilter("ignore")
    client = Onceward(case["address"], owner="conformance", **credential_of(case))
    closing = asyncio.ensure_future(_close_early(client, case)) if "closeAfterMs" in case else None
    functions: list[dict[str, Any]] = []
    searches: list[dict[str, Any]] = []
    outcomes = []
    for run in case["runs"]:
        if run.get("closeBefore"):
            await client.close()
        outcomes.append(await _perform_run(client, run, functions, searches))
    if closing is not None:
        await closing
    await client.close()
    return {"runs": outcomes, "functions": functions, "searches": searches}


async def _close_early(client: Onceward, case: dict[str, Any]) -> None:
    await asyncio.sleep(case["closeAfterMs"] / 1000)
    await client.close(case.get("closeTimeoutMs"))


async def _perform_run(
    client: Onceward, run: dict[str, Any], functions: list[dict[str, Any]], searches: list[dict[str, Any]]
) -> object:
    async def function(claim: Claim) -> object:
        seen = describe_claim(claim)
        functions.append(seen)
        return await _perform_steps(run["function"], claim, seen)

    async def resolve(claim: Claim) -> object:
        seen = {**describe_claim(claim), "sinceMs": claim.ms_since_effect_may_have_begun}
        searches.append(seen)
        steps = run["resolve"][min(len(searches), len(run["resolve"])) - 1]
        return await _perform_steps(steps, claim, seen)

    namespace, key, options = options_of(run)
    if "resolve" in run:
        options["resolve"] = resolve

    async def reported() -> object:
        # Not awaited from outside: a task that raises SystemExit stops the event loop.
        try:
            if "seen" in run:
                keys = run["seen"]
                if len(keys) == 1:
                    return {"seen": [await client.seen(namespace, *keys, **options)]}
                return {"seen": await client.seen_all(namespace, keys, **options)}
            return report_result(await client.run_detailed(namespace, key, function, **options))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            return report_error(error)

    running = asyncio.ensure_future(reported())
    if "cancelAfterMs" in run:
        asyncio.get_running_loop().call_later(run["cancelAfterMs"] / 1000, running.cancel)
    return await running


async def _perform_steps(steps: list[dict[str, Any]], claim: Claim, seen: dict[str, Any]) -> object:
    for index, step in enumerate(steps):
        if "saveCheckpoint" in step:
            checkpoint = step["saveCheckpoint"]
            await claim.save_checkpoint(checkpoint["name"], read_value(checkpoint.get("state")))
        elif "begin" in step:
            await claim.begin()
        elif "awaitLost" in step:
            try:
                await claim.wait_until_lost()
            except asyncio.CancelledError:
                if len(steps) == index + 1:
                    raise
                seen["lost"] = "cancelled"
                return await _perform_steps(steps[index + 1 :], claim, seen)
            seen["lost"] = claim.lost.reason if claim.lost else None
        elif "return" in step:
            return read_value(step["return"])
        elif (found := resolution_of(step)) is not None:
            return found
        else:
            perform_other_step(step, claim, seen)
    return None
