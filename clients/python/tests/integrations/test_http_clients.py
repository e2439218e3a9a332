"""What the time limits of HTTP libraries say about a function's effect."""

import socket
from collections.abc import Callable, Iterator

import httpx
import pytest
import requests

from onceward.testing import TestingOnceward
from onceward.v1.record_pb2 import Record


@pytest.fixture
def silent() -> Iterator[str]:
    """Returns the URL of a bank that takes each request, and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as bank:
        yield f"http://127.0.0.1:{bank.getsockname()[1]}"


@pytest.fixture
def full() -> Iterator[str]:
    """Returns the URL of a bank whose queue of connections is full, so that it takes no further one."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as bank:
        address = bank.getsockname()
        waiting = [socket.socket() for _ in range(8)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}"
        for each in waiting:
            each.close()


@pytest.mark.parametrize("post", [httpx.post, requests.post], ids=["httpx", "requests"])
@pytest.mark.parametrize(
    ("bank", "state"), [("silent", Record.STATE_IN_PROGRESS), ("full", Record.STATE_RELEASED)]
)
def test_a_time_limit_is_unknown_unless_there_was_no_connection(
    request: pytest.FixtureRequest, post: Callable[..., object], bank: str, state: int
) -> None:
    url = request.getfixturevalue(bank)
    with TestingOnceward() as testing:
        with pytest.raises((httpx.TimeoutException, requests.Timeout)):
            testing.onceward.run("charges", "order-1", lambda _: post(url, timeout=0.5))
        assert [each.state for each in testing.records()] == [state]
