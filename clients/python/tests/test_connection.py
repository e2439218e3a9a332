"""Heartbeats of a silent connection, addresses that fail, certificates and tokens.

Other calls of a silent connection, and damaged answers, are in clients/conformance.
"""

import asyncio
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from onceward import CredentialInvalidError, InvalidRequestError, Onceward, OncewardError
from onceward._connection import Tls
from onceward._homes import Homes
from onceward._times import datetime_of
from onceward.aio import Onceward as AioOnceward
from onceward.testing import TestingOnceward
from onceward.testing._refusals import Refused
from onceward.v1.idempotency_pb2 import CompleteResponse


class Proxy:
    """A proxy in a thread, whose connections can be made to forward nothing, and stay open."""

    def __init__(self, target: str, socket: Path | None = None) -> None:
        """:param socket: the path of the Unix socket to listen on; ``None``: a port."""
        self._port = int(target.rsplit(":", 1)[1])
        self._open: list[asyncio.Event] = []
        self._loop = asyncio.new_event_loop()
        if socket is None:
            listening = asyncio.start_server(self._connected, "127.0.0.1", 0)
        else:
            listening = asyncio.start_unix_server(self._connected, socket)
        self._server = self._loop.run_until_complete(listening)
        at = self._server.sockets[0].getsockname()
        self.address = f"unix:{at}" if socket else f"http://127.0.0.1:{at[1]}"
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        forwards = asyncio.Event()
        forwards.set()
        self._open.append(forwards)
        there, back = await asyncio.open_connection("127.0.0.1", self._port)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65_536):
                await forwards.wait()
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    def silence(self) -> None:
        """Has the connections that are open now forward nothing."""
        self._loop.call_soon_threadsafe(lambda: [each.clear() for each in self._open])

    def close(self) -> None:
        """Ends the proxy and its connections."""

        async def end() -> None:
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Observed(TestingOnceward):
    """A service that says when a lease was prolonged."""

    __test__ = False

    def __init__(self) -> None:
        self.extended = threading.Event()
        super().__init__()

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        if call == "ExtendLease":
            self.extended.set()
        return super()._answer(call, request, context)


class Home(TestingOnceward):
    """A service that counts calls, and refuses them once its tenant has moved."""

    __test__ = False

    def __init__(self) -> None:
        self.moved_to: str | None = None
        self.calls = 0
        super().__init__()

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls += 1
        if self.moved_to is not None:
            raise Refused("TENANT_MOVING", "moving", address=self.moved_to)
        return super()._answer(call, request, context)


@contextmanager
def _proxied() -> Iterator[tuple[Observed, Proxy]]:
    with Observed() as testing:
        proxy = Proxy(testing.address)
        try:
            yield testing, proxy
        finally:
            proxy.close()


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


@pytest.mark.parametrize("client", [_threads, _aio])
def test_heartbeats_of_a_silent_connection_reach_the_service_on_a_new_one(
    client: Callable[..., None],
) -> None:
    with _proxied() as (testing, proxy):

        def charge(claim: Any) -> None:
            proxy.silence()
            assert testing.extended.wait(20)
            assert claim.lost is None

        client(proxy.address, lambda run: run("charges", "order-1", charge, lease_ms=15_000))


@pytest.mark.parametrize("client", [_threads, _aio])
def test_calls_reach_a_replica_over_its_unix_socket(client: Callable[..., None], tmp_path: Path) -> None:
    with TestingOnceward() as testing:
        proxy = Proxy(testing.address, tmp_path / "onceward.sock")
        client(proxy.address, lambda run: run("charges", "order-1", lambda _: 1))
        proxy.close()
        assert len(testing.records()) == 1


@pytest.mark.parametrize(
    "address",
    ["unix:", "unix:onceward.sock", "unix://host/x", "unix:/x?y", "unix:/x#y", "unix:/%20", "UNIX:/x"],
)
def test_an_address_that_may_mean_another_socket_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequestError):
        Onceward(address, api_key="key")


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


@pytest.mark.parametrize("client", [Onceward, AioOnceward])
@pytest.mark.parametrize(
    ("address", "options", "field"),
    [
        ([], {}, "address"),
        ("http://localhost:1", {"tls_ca": b"pem"}, "tls_ca, tls_cert and tls_key"),
        ("https://localhost:1", {"tls_cert": b"pem"}, "tls_cert"),
        ("https://localhost:1", {"tls_ca": "-----BEGIN"}, "tls_ca"),
    ],
)
def test_addresses_and_certificates_are_checked_at_once(
    client: Any, address: Any, options: Any, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        client(address, api_key="key", **options)
    assert [each.field for each in refused.value.violations] == [field]
    assert "BEGIN" not in str(refused.value)


class _WithoutOutcome(grpc.GenericRpcHandler):
    """A service whose answers have no outcome, so that only a connection is needed to get one."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")


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
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((_WithoutOutcome(),))
        pair = (key.read_bytes(), cert.read_bytes())
        port = server.add_secure_port(
            "localhost:0", grpc.ssl_server_credentials([pair], cert.read_bytes(), require_client_auth=True)
        )
        server.start()

        def use(run: Callable[..., Any]) -> None:
            with pytest.raises(OncewardError) as refused:
                run("charges", "order-1", lambda _: None, timeout_ms=500)
            assert refused.value.reason == "NO_ANSWER"
            of_client.write_bytes(cert.read_bytes())
            with pytest.raises(OncewardError) as answered:
                run("charges", "order-1", lambda _: None, timeout_ms=10_000)
            assert answered.value.reason == "INTERNAL"

        try:
            client(
                f"https://localhost:{port}", use, tls_ca=cert.read_bytes(), tls_cert=of_client, tls_key=key
            )
        finally:
            server.stop(None).wait()


def test_a_time_that_no_datetime_has_does_not_hide_a_stored_outcome() -> None:
    response = CompleteResponse()
    response.completed_at.seconds = 2**60
    assert datetime_of(response.completed_at).year == 9999


def test_a_token_that_the_service_refuses_is_asked_for_again_once() -> None:
    asked = []

    def token() -> str:
        asked.append("again")
        return "token"

    with TestingOnceward() as testing, Onceward(testing.address, token=token) as onceward:
        testing.fail_next("Claim", "CREDENTIAL_INVALID")
        assert onceward.run("charges", "order-1", lambda _: 1) == 1
        # For two Claims and a Complete.
        assert len(asked) == 3
        testing.fail_next("Claim", "CREDENTIAL_INVALID", times=2)
        with pytest.raises(CredentialInvalidError):
            onceward.run("charges", "order-2", lambda _: 1)
