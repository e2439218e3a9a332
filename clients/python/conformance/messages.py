"""Deliveries of messages to a consumer, of the blocking and the asyncio client."""

from __future__ import annotations

import asyncio
from typing import Any

from reports import describe_claim, report_error
from runs import _perform_steps
from runs_asyncio import _perform_steps as _perform_steps_asyncio
from values import snake_case, write_value

from onceward import Onceward, aio
from onceward.consumers import Delivery, message_handler


def perform_messages(case: dict[str, Any], uses_asyncio: bool) -> object:
    """Performs the deliveries of a case. Returns their outcomes, and how often the function was called."""
    return asyncio.run(_perform_asyncio(case)) if uses_asyncio else _perform(case)


def _options_of(case: dict[str, Any]) -> Any:
    options = {snake_case(name): value for name, value in case.get("options", {}).items()}
    if "fingerprint" in options:
        options["fingerprint"] = lambda _: case["options"]["fingerprint"]
    return {**options, "key": lambda message: message.get("key")}


def _perform(case: dict[str, Any]) -> object:
    calls: list[str] = []

    def function(message: dict[str, Any], claim: Any) -> object:
        calls.append(claim.key)
        return _perform_steps(message["function"], claim, describe_claim(claim))

    with Onceward(case["address"], api_key="conformance", owner="conformance") as client:
        handle = message_handler(client, "charges", function, **_options_of(case))
        deliveries = [_report(handle(message)) for message in case["deliveries"]]
    return {"deliveries": deliveries, "functions": len(calls)}


async def _perform_asyncio(case: dict[str, Any]) -> object:
    calls: list[str] = []

    async def function(message: dict[str, Any], claim: Any) -> object:
        calls.append(claim.key)
        return await _perform_steps_asyncio(message["function"], claim, describe_claim(claim))

    async with aio.Onceward(case["address"], api_key="conformance", owner="conformance") as client:
        handle = message_handler(client, "charges", function, **_options_of(case))
        deliveries = [_report(await handle(message)) for message in case["deliveries"]]
    return {"deliveries": deliveries, "functions": len(calls)}


def _report(delivery: Delivery[Any]) -> dict[str, Any]:
    report: dict[str, Any] = {"kind": delivery.kind, "action": delivery.action}
    if delivery.delay_ms is not None:
        report["delayMs"] = delivery.delay_ms
    if delivery.value is not None:
        report["value"] = write_value(delivery.value)
    if delivery.error is not None:
        report["error"] = report_error(delivery.error)
    return report
