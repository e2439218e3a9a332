"""Sockets, addresses that fail, homes of a tenant, and certificates.

Silent connections, damaged answers and tokens are in clients/conformance.
"""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from onceward import InvalidRequestError, Onceward, OncewardError
from onceward._connection import Tls
from onceward._homes import Homes
from onceward._times import datetime_of
from onceward.aio import Onceward as AioOnceward
from onceward.testing import TestingOnceward
from onceward.testing._refusals import Refused
from onceward.v1.idempotency_pb2 import CompleteResponse


class Home(TestingOnceward):
    """A service that counts calls, and refuses them once its tenant has moved."""

    def __init__(self) -> None:
        self.moved_to: str | None = None
        self.calls = 0
        super().__init__()

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls += 1
        if self.moved_to is not None:
            raise Refused("TENANT_MOVING", "moving", address=self.moved_to)
        return super()._answer(call, request, context)


def _threads(address: Any, use: Callable[[Callable[..., Any]], None], **options: Any) -> None:
    with Onceward(address, api_key="key", **options) as onceward:
        use(onceward.run)


def _aio(address: Any, use: Callable[[Callable[..., Any]], None], **options: Any) -> None:
    loop = asyncio.new_event_loop()

    async def connect() -> AioOnceward:
        return AioOnceward(address, api_key="key", **options)

    onceward = loop.run_until_complete(connect())

    def run(namespace: str, key: str, fn: Callable[[Any], Any], **options: Any) -> Any:
        async def call(claim: Any) -> Any:
            return await asyncio.to_thread(fn, claim)

        return loop.run_until_complete(onceward.run(namespace, key, call, **options))

    use(run)
    loop.run_until_complete(onceward.close())
    loop.close()


class _WithoutOutcome(grpc.GenericRpcHandler):
    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")


@contextmanager
def _answering(listen: Callable[[grpc.Server], int]) -> Iterator[int]:
    """Runs a service whose answers have no outcome, so that only a connection is needed to get one."""
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((_WithoutOutcome(),))
        port = listen(server)
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()


def _reason(run: Callable[..., Any], timeout_ms: int) -> str:
    with pytest.raises(OncewardError) as refused:
        run("charges", "order-1", lambda _: None, timeout_ms=timeout_ms)
    return refused.value.reason


@pytest.mark.parametrize("client", [_threads, _aio])
def test_calls_reach_a_replica_over_its_unix_socket(client: Callable[..., None], tmp_path: Path) -> None:
    def use(run: Callable[..., Any]) -> None:
        assert _reason(run, 10_000) == "INTERNAL"

    address = f"unix:{tmp_path}/onceward.sock"
    with _answering(lambda server: server.add_insecure_port(address)):
        client(address, use)


@pytest.mark.parametrize("client", [_threads, _aio])
def test_calls_go_to_another_address_when_one_is_down(client: Callable[..., None]) -> None:
    with TestingOnceward() as testing, TestingOnceward() as down:
        down.close()
        for _ in range(4):
            client([down.address, testing.address], lambda run: run("charges", "order-1", lambda _: 1))


@pytest.mark.parametrize("client", [_threads, _aio])
def test_calls_follow_a_tenant_that_moves_on_and_go_back_while_its_home_is_down(
    client: Callable[..., None],
) -> None:
    with Home() as first, Home() as second, Home() as third:

        def use(run: Callable[..., Any]) -> None:
            run("charges", "order-1", lambda _: 1)
            first.moved_to, second.moved_to = second.address, third.address
            run("charges", "order-2", lambda _: 1)
            assert [first.calls, second.calls, third.calls] == [3, 1, 2]
            run("charges", "order-3", lambda _: 1)
            assert [first.calls, second.calls, third.calls] == [3, 1, 4]
            first.moved_to = None
            third.close()
            run("charges", "order-1", lambda _: 2)
            assert first.calls == 4

        client(first.address, use)


@pytest.mark.parametrize(
    ("configured", "address"),
    [
        ("https://a:1", "http://b:1"),
        ("http://a:1", "https://b:1"),
        ("unix:/a", "http://b:1"),
        ("unix:/a", "unix:/b"),
        (["http://a:1", "https://a:2"], "http://b:1"),
    ],
)
def test_no_call_follows_to_another_scheme_nor_by_a_socket(configured: Any, address: str) -> None:
    assert Homes(grpc, configured, Tls())._at(address) is None


_NO_ORIGINS = ["localhost:50051", "ftp://localhost", "http://localhost/path", "http://me:secret@localhost"]
#: They may mean another socket elsewhere.
_NO_SOCKETS = ["unix:", "unix:socket", "unix://host/x", "unix:/x?y", "unix:/x#y", "unix:/%20", "UNIX:/x"]


@pytest.mark.parametrize("client", [Onceward, AioOnceward])
@pytest.mark.parametrize(
    ("address", "options", "field"),
    [
        *[(each, {}, "address") for each in ([], *_NO_ORIGINS, *_NO_SOCKETS)],
        ("http://localhost:1", {"tls_ca": b"pem"}, "tls_ca, tls_cert and tls_key"),
        ("https://localhost:1", {"tls_cert": b"pem"}, "tls_cert"),
        ("https://localhost:1", {"tls_ca": "-----BEGIN secret"}, "tls_ca"),
    ],
)
def test_addresses_and_certificates_are_checked_at_once(
    client: Any, address: Any, options: Any, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        client(address, api_key="key", **options)
    assert [each.field for each in refused.value.violations] == [field]
    assert "secret" not in str(refused.value)


def _certificates(folder: Path) -> tuple[Path, Path]:
    """Writes a certificate of localhost that signs itself. Returns it, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    of = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    subprocess.run([*new, *of, "-out", cert, "-keyout", key], check=True, capture_output=True)
    return cert, key


@pytest.mark.parametrize("client", [_threads, _aio])
def test_a_client_certificate_that_has_changed_is_read_again(
    client: Callable[..., None], tmp_path: Path
) -> None:
    cert, key = _certificates(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    of_client = tmp_path / "client.pem"
    of_client.write_bytes(_certificates(other)[0].read_bytes())
    pair = (key.read_bytes(), cert.read_bytes())
    credentials = grpc.ssl_server_credentials([pair], cert.read_bytes(), require_client_auth=True)

    def use(run: Callable[..., Any]) -> None:
        assert _reason(run, 500) == "NO_ANSWER"
        of_client.write_bytes(cert.read_bytes())
        assert _reason(run, 10_000) == "INTERNAL"

    with _answering(lambda server: server.add_secure_port("localhost:0", credentials)) as port:
        tls = {"tls_ca": cert.read_bytes(), "tls_cert": of_client, "tls_key": key}
        client(f"https://localhost:{port}", use, **tls)


def test_a_time_that_no_datetime_has_does_not_hide_a_stored_outcome() -> None:
    response = CompleteResponse()
    response.completed_at.seconds = 2**60
    assert datetime_of(response.completed_at).year == 9999
