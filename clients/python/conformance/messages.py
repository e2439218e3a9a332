"""Deliveries of messages to a consumer, of the blocking and the asyncio client."""

from __future__ import annotations

import asyncio
from typing import Any

from reports import describe_claim, report_error
from runs import drive, perform_steps, settled
from values import snake_case, write_value

from onceward import Onceward, aio
from onceward.consumers import Delivery, message_handler


def perform_messages(case: dict[str, Any], uses_asyncio: bool) -> object:
    """Performs the deliveries of a case. Returns their outcomes, and how often the function was called."""
    return asyncio.run(_perform(case, aio.Onceward)) if uses_asyncio else drive(_perform(case, Onceward))


async def _perform(case: dict[str, Any], kind: Any) -> object:
    calls: list[str] = []

    async def function(message: dict[str, Any], claim: Any) -> object:
        calls.append(claim.key)
        return await perform_steps(message["function"], claim, describe_claim(claim))

    blocks = kind is Onceward
    called = (lambda message, claim: drive(function(message, claim))) if blocks else function
    options: Any = {snake_case(name): value for name, value in case.get("options", {}).items()}
    if "fingerprint" in options:
        options["fingerprint"] = lambda _: case["options"]["fingerprint"]
    options["key"] = lambda message: message.get("key")
    client = kind(case["address"], api_key="conformance", owner="conformance")
    handle = message_handler(client, "charges", called, **options)
    deliveries = [_report(await settled(handle(message))) for message in case["deliveries"]]
    await settled(client.close())
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
