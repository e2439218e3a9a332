"""Keys of the calls that a guarded function makes."""

import asyncio
import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest

from onceward import aio, current_claim, derive_key, format_idempotency_key
from onceward.outgoing import AioGrpcKeys, GrpcKeys, HttpKeys
from onceward.testing import TestingOnceward

_CREATE = "/shop.v1.Charges/Create"
_OWN = [("idempotency-key", '"own"')]


def _sent(**options: Any) -> str | None:
    request = SimpleNamespace(method="POST", url="http://bank/charges?1", headers={})
    return HttpKeys(**options)(request).headers.get("idempotency-key")


def _of(key: str, name: str) -> str:
    return format_idempotency_key(derive_key("orders", key, name))


@pytest.fixture
def echo() -> Iterator[str]:
    """Returns the address of a gRPC service that answers each call with its key."""

    def answer(_: bytes, context: grpc.ServicerContext) -> bytes:
        return str(dict(context.invocation_metadata()).get("idempotency-key")).encode()

    server = grpc.server(ThreadPoolExecutor(1))
    method = grpc.unary_unary_rpc_method_handler(answer)
    for service, name in (("shop.v1.Charges", "Create"), ("onceward.v1.IdempotencyService", "Lookup")):
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {name: method})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_a_call_of_grpc_has_the_key_of_its_claim_its_own_or_none(echo: str) -> None:
    with TestingOnceward() as testing, grpc.insecure_channel(echo) as channel:
        keyed = grpc.intercept_channel(channel, GrpcKeys())
        named = grpc.intercept_channel(channel, GrpcKeys(name=lambda procedure, _: f"second {procedure}"))
        create, lookup = (
            keyed.unary_unary(_CREATE),
            keyed.unary_unary("/onceward.v1.IdempotencyService/Lookup"),
        )

        def place(_: object) -> list[str]:
            second = named.unary_unary(_CREATE)(b"")
            answers = [
                create(b""),
                create.future(b"").result(),
                second,
                create(b"", metadata=_OWN),
                lookup(b""),
            ]
            return [answer.decode() for answer in answers]

        answers = testing.onceward.run("orders", "order-1", place)
        derived = _of("order-1", _CREATE)
        assert answers == [derived, derived, _of("order-1", f"second {_CREATE}"), '"own"', "None"]
        assert create(b"") == b"None"


def test_a_call_of_grpc_aio_has_the_key_of_its_claim_its_own_or_none(echo: str) -> None:
    async def run(address: str) -> None:
        async with (
            grpc.aio.insecure_channel(echo, interceptors=[AioGrpcKeys()]) as channel,
            aio.Onceward(address, api_key="key") as onceward,
        ):
            create = channel.unary_unary(_CREATE)

            async def place(_: object) -> list[str]:
                return [(await create(b"")).decode(), (await create(b"", metadata=_OWN)).decode()]

            assert await onceward.run("orders", "order-1", place) == [_of("order-1", _CREATE), '"own"']
            assert await create(b"") == b"None"

    with TestingOnceward() as testing:
        asyncio.run(run(testing.address))


def test_a_hundred_concurrent_claims_send_their_own_keys_until_they_end() -> None:
    left: list[contextvars.Context] = []

    async def place(onceward: aio.Onceward, key: str, all_run: asyncio.Event) -> None:
        async def send(_: object) -> None:
            left.append(contextvars.copy_context())
            if len(left) == 100:
                all_run.set()
            await all_run.wait()
            assert await asyncio.to_thread(_sent) == _sent() == _of(key, "POST bank/charges")
            assert _sent(name=lambda request: request.url) == _of(key, "http://bank/charges?1")

        await onceward.run("orders", key, send)

    async def place_all(address: str) -> None:
        async with aio.Onceward(address, api_key="key") as onceward:
            all_run = asyncio.Event()
            await asyncio.gather(*(place(onceward, f"order-{i}", all_run) for i in range(100)))

    with TestingOnceward() as testing:
        asyncio.run(place_all(testing.address))
    assert [_sent(), *(each.run(_sent) for each in left)] == [None] * 101
    with pytest.raises(LookupError):
        left[0].run(current_claim)
