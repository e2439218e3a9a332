"""Messages of a Redis stream, handled once."""

import asyncio
from typing import Any

import pytest
import redis

from onceward import InvalidRequestError, TerminalError
from onceward.consumers import Delivery, message_handler
from onceward.testing import TestingOnceward

Message = tuple[bytes, dict[bytes, bytes]]


class Stream:
    """A stream with a group of one consumer, which reads what it has not acknowledged again."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url, protocol=2)
        self._redis.flushall()
        self._redis.xgroup_create("charges", "workers", mkstream=True)

    def send(self, **fields: str) -> None:
        self._redis.xadd("charges", dict(fields))

    def consume(self, handle: Any) -> list[Delivery[Any]]:
        """Reads all messages once, and does with each what its outcome says."""
        self._redis.xreadgroup("workers", "worker-1", {"charges": ">"})
        [[_, messages]] = self._redis.xreadgroup("workers", "worker-1", {"charges": "0"})
        deliveries = [handle(message) for message in messages]
        for (message_id, fields), delivery in zip(messages, deliveries, strict=True):
            if delivery.action == "dead-letter":
                self._redis.xadd("charges.dead", {**fields, "error": str(delivery.error)})
            if delivery.action != "retry":
                self._redis.xack("charges", "workers", message_id)
        return deliveries

    def dead(self) -> list[dict[bytes, bytes]]:
        return [fields for _, fields in self._redis.xrange("charges.dead")]


def _key_of(message: Message) -> str:
    return message[1][b"order"].decode()


def test_messages_are_acknowledged_retried_and_dead_lettered(redis_url: str) -> None:
    stream, effects = Stream(redis_url), []

    def charge(message: Message, claim: Any) -> str:
        effects.append(f"{claim.key} in attempt {claim.attempt}")
        if claim.key == "dear":
            raise TerminalError("too expensive")
        if claim.key == "flaky" and claim.attempt == 1:
            raise ConnectionError("no bank")
        return f"ch_{claim.key}"

    with TestingOnceward() as testing:
        handle = message_handler(testing.onceward, "charges", charge, key=_key_of)
        for order in ("cheap", "cheap", "dear", "flaky"):
            stream.send(order=order)
        stream.send(other="field")
        kinds = [(each.kind, each.action) for each in stream.consume(handle)]
        assert kinds == [
            ("processed", "acknowledge"),
            ("duplicate", "acknowledge"),
            ("failed", "dead-letter"),
            ("released", "retry"),
            ("refused", "dead-letter"),
        ]
        [retried] = stream.consume(handle)
        assert (retried.kind, retried.value) == ("processed", "ch_flaky")
        assert [fields.get(b"order") for fields in stream.dead()] == [b"dear", None]
        assert effects == [f"{each} in attempt 1" for each in ("cheap", "dear", "flaky")] + [
            "flaky in attempt 2"
        ]


def test_a_message_meets_another_holder_without_a_wait_also_with_asyncio() -> None:
    async def charge(message: str, claim: Any) -> str:
        return f"ch_{message}"

    async def run(testing: TestingOnceward) -> None:
        async with testing.aio() as onceward:
            handle = message_handler(onceward, "charges", charge, key=lambda message: message)
            async with onceward.claim("charges", "order-1") as scope:
                met = await handle("order-1")
                assert (met.kind, met.action, met.delay_ms) == ("postponed", "retry", 5000)
                await scope.release()
            assert (await handle("order-1")).value == "ch_order-1"

    with TestingOnceward() as testing:
        asyncio.run(run(testing))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"redeliver_after_ms": 0}, "redeliver_after_ms"),
        ({"max_redeliver_after_ms": 1}, "max_redeliver_after_ms"),
        ({"lease_ms": 1}, "lease_ms"),
        ({"max_atempts": 3}, "max_atempts"),
    ],
)
def test_an_invalid_option_is_refused_before_the_first_message(options: Any, field: str) -> None:
    with TestingOnceward() as testing:
        with pytest.raises(InvalidRequestError, match=field):
            message_handler(testing.onceward, "charges", lambda *_: None, key=str, **options)
