"""Measures operations a second of the clients beside bare stubs, for `npm run bench -- --only P22`.

An operation is a Claim and a Complete of a fresh key. The environment says where and how: ONCEWARD_ADDRESS,
ONCEWARD_API_KEY, ONCEWARD_NAMESPACE, BENCH_CALLERS ("1,64,256") and BENCH_SECONDS, of each figure. Prints one
line of JSON for each figure.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
import time
import uuid
from collections.abc import Awaitable, Callable

import grpc
import grpc.aio

import onceward
import onceward.aio
from onceward._connection import path_of, response_class
from onceward.v1.idempotency_pb2 import ClaimRequest, CompleteRequest
from onceward.v1.record_pb2 import Result

ADDRESS = os.environ["ONCEWARD_ADDRESS"]
API_KEY = os.environ["ONCEWARD_API_KEY"]
NAMESPACE = os.environ["ONCEWARD_NAMESPACE"]
METADATA = (("authorization", f"Bearer {API_KEY}"),)
SECONDS = float(os.environ["BENCH_SECONDS"])
WARM_UP_SECONDS = 1.0

_run = uuid.uuid4().hex
_numbers = itertools.count()


def fresh_key() -> str:
    return f"{_run}{next(_numbers):08}"


def report(client: str, callers: int, rate: float) -> None:
    figure = {"language": "python", "client": client, "callers": callers, "operationsPerSecond": rate}
    print(json.dumps(figure), flush=True)


class Window:
    """Counts the operations that end between the end of the warm-up and the end of the measurement."""

    def __init__(self) -> None:
        self._begins_at = time.monotonic() + WARM_UP_SECONDS
        self._ends_at = self._begins_at + SECONDS

    def has_ended(self) -> bool:
        return time.monotonic() >= self._ends_at

    def counts_now(self) -> bool:
        return self._begins_at <= time.monotonic() < self._ends_at


def measure_threads(callers: int, operate: Callable[[], object]) -> float:
    window = Window()
    counts = [0] * callers
    failures: list[BaseException] = []

    def work(caller: int) -> None:
        try:
            while not window.has_ended():
                operate()
                counts[caller] += window.counts_now()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=[caller]) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / SECONDS


async def measure_tasks(callers: int, operate: Callable[[], Awaitable[object]]) -> float:
    window = Window()
    counts = [0] * callers

    async def work(caller: int) -> None:
        while not window.has_ended():
            await operate()
            counts[caller] += window.counts_now()

    await asyncio.gather(*map(work, range(callers)))
    return sum(counts) / SECONDS


def claim_request(key: str) -> ClaimRequest:
    return ClaimRequest(namespace=NAMESPACE, key=key, claim_id=key, owner="bench")


def complete_request(key: str, fencing_token: int) -> CompleteRequest:
    result = Result(kind=Result.KIND_SUCCESS, payload=b"null", content_type="application/json")
    return CompleteRequest(namespace=NAMESPACE, key=key, fencing_token=fencing_token, result=result)


def stub(channel: grpc.Channel | grpc.aio.Channel, method: str) -> Callable[..., object]:
    return channel.unary_unary(  # type: ignore[return-value]
        path_of(method),
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=response_class(method).FromString,  # type: ignore[attr-defined]
    )


def measure_blocking(callers: int) -> None:
    with grpc.insecure_channel(ADDRESS) as channel:
        claim, complete = stub(channel, "Claim"), stub(channel, "Complete")

        def operate() -> None:
            key = fresh_key()
            token = claim(claim_request(key), metadata=METADATA).claimed.fencing_token  # type: ignore[attr-defined]
            complete(complete_request(key, token), metadata=METADATA)

        report("stub", callers, measure_threads(callers, operate))
    with onceward.Onceward(f"http://{ADDRESS}", api_key=API_KEY) as client:
        rate = measure_threads(callers, lambda: client.run(NAMESPACE, fresh_key(), lambda _: None))
        report("onceward", callers, rate)


async def measure_asyncio(callers: int) -> None:
    async with grpc.aio.insecure_channel(ADDRESS) as channel:
        claim, complete = stub(channel, "Claim"), stub(channel, "Complete")

        async def operate() -> None:
            key = fresh_key()
            response = await claim(claim_request(key), metadata=METADATA)  # type: ignore[misc]
            token = response.claimed.fencing_token
            await complete(complete_request(key, token), metadata=METADATA)  # type: ignore[misc]

        report("stub-asyncio", callers, await measure_tasks(callers, operate))
    async with onceward.aio.Onceward(f"http://{ADDRESS}", api_key=API_KEY) as client:
        rate = await measure_tasks(callers, lambda: client.run(NAMESPACE, fresh_key(), lambda _: None))
        report("onceward-asyncio", callers, rate)


if __name__ == "__main__":
    for count in map(int, os.environ["BENCH_CALLERS"].split(",")):
        measure_blocking(count)
        asyncio.run(measure_asyncio(count))
