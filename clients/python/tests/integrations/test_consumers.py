"""Messages of a Redis stream and a queue of RabbitMQ, handled once."""

import json
from collections.abc import Iterator
from typing import Any

import pika
import pytest
import redis

from onceward import Happened, InvalidRequestError, OutcomeUnknownError, TerminalError
from onceward.consumers import Delivery, message_handler
from onceward.testing import TestingOnceward, TestingPolicy

Message = dict[str, str]


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
        deliveries = [handle(_decoded(fields)) for _, fields in messages]
        for (message_id, fields), delivery in zip(messages, deliveries, strict=True):
            if delivery.action == "dead-letter":
                self._redis.xadd("charges.dead", {**fields, "error": str(delivery.error)})
            if delivery.action != "retry":
                self._redis.xack("charges", "workers", message_id)
        return deliveries

    def dead(self) -> list[Message]:
        return [_decoded(fields) for _, fields in self._redis.xrange("charges.dead")]


def _decoded(fields: dict[bytes, bytes]) -> Message:
    return {name.decode(): value.decode() for name, value in fields.items()}


class Queue:
    """A queue whose messages are dead-lettered when a consumer rejects them."""

    def __init__(self, url: str) -> None:
        self._channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "charges.dead"}
        self._channel.queue_declare("charges.dead")
        self._channel.queue_declare("charges", arguments=dead)
        self._channel.confirm_delivery()

    def send(self, **fields: str) -> None:
        self._channel.basic_publish("", "charges", json.dumps(fields).encode())

    def consume(self, handle: Any) -> list[Delivery[Any]]:
        """Reads all messages once, and does with each what its outcome says."""
        messages = list(self._messages("charges"))
        deliveries = [handle(message) for _, message in messages]
        for (tag, _), delivery in zip(messages, deliveries, strict=True):
            if delivery.action == "acknowledge":
                self._channel.basic_ack(tag)
            else:
                self._channel.basic_nack(tag, requeue=delivery.action == "retry")
        return deliveries

    def dead(self) -> list[Message]:
        return [message for _, message in self._messages("charges.dead")]

    def _messages(self, queue: str) -> Iterator[tuple[int, Message]]:
        while (received := self._channel.basic_get(queue))[0] is not None:
            yield received[0].delivery_tag, json.loads(received[2])


def _key_of(message: Message) -> str:
    return message["order"]


@pytest.fixture(params=["redis", "rabbitmq"])
def stream(request: pytest.FixtureRequest) -> Stream | Queue:
    """Returns an empty stream or queue of a broker."""
    kind = {"redis": Stream, "rabbitmq": Queue}[request.param]
    return kind(request.getfixturevalue(f"{request.param}_url"))


def test_messages_are_acknowledged_retried_and_dead_lettered(stream: Stream | Queue) -> None:
    effects = []

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
        assert [fields.get("order") for fields in stream.dead()] == ["dear", None]
        assert effects == [f"{each} in attempt 1" for each in ("cheap", "dear", "flaky")] + [
            "flaky in attempt 2"
        ]


def test_a_message_whose_effect_resolve_found_is_a_duplicate_with_its_value() -> None:
    def charge(message: str, claim: Any) -> str:
        raise OutcomeUnknownError("the bank timed out")

    def resolve(claim: Any, message: str) -> Happened:
        return Happened(f"ch_{message} in attempt {claim.attempt}")

    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        handle = message_handler(testing.onceward, "charges", charge, key=str, resolve=resolve)
        assert handle("order-1").kind == "released"
        testing.advance(30_000)
        found = [(each.kind, each.value) for each in (handle("order-1"), handle("order-1"))]
        assert found == [("duplicate", "ch_order-1 in attempt 2")] * 2


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
