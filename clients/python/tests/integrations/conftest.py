"""What the tests with brokers and databases share."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
import pytest
import redis
from django.conf import settings

from onceward.testing import TestingOnceward, TestingPolicy

_STARTS_WITHIN_S = 30


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Runs a redis-server, for brokers of tasks."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    try:
        url = f"redis://127.0.0.1:{port}"
        client = redis.Redis.from_url(url)
        deadline_s = time.monotonic() + _STARTS_WITHIN_S
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < deadline_s, "redis-server does not answer"
                time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="session")
def rabbitmq_url() -> str:
    """Returns the URL of an empty RabbitMQ, which the caller of the tests has started."""
    url = os.environ.get("ONCEWARD_TEST_RABBITMQ")
    if url is None:
        pytest.skip("ONCEWARD_TEST_RABBITMQ is not set")
    return url


@pytest.fixture(scope="session")
def configured_django() -> None:
    """Configures Django, whose settings are those of the process."""
    views = "guarded_apis"
    settings.configure(ROOT_URLCONF=views, MIDDLEWARE=[f"{views}.idempotency"], ALLOWED_HOSTS=["*"])
    django.setup()


@pytest.fixture(params=["fastapi", "django"])
def start(request: pytest.FixtureRequest, configured_django: None) -> Any:
    """Returns what begins an API behind a guard, and behind a second one if a namespace is ``around``."""
    import guarded_apis

    @contextmanager
    def begin(
        policy: TestingPolicy | None = None, around: str | None = None, **options: Any
    ) -> Iterator[Any]:
        guards = [options, {"namespace": around}] if around else [options]
        with TestingOnceward(policy=policy) as testing:
            with getattr(guarded_apis, request.param)(testing, *guards) as api:
                yield api

    return begin


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    """Returns a file to which tasks append a line for each effect."""
    file = tmp_path / "effects"
    file.touch()
    return file
