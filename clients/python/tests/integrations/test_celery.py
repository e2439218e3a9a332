"""Celery tasks, with a real worker on Redis."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from onceward.celery import guarded_task
from onceward.testing import TestingOnceward
from onceward.v1.record_pb2 import Record

#: Two messages that meet are 30 s apart afterwards, and on a busy machine a worker takes as long to start.
_TIMEOUT_S = 240


@pytest.fixture
def testing() -> Iterator[TestingOnceward]:
    with TestingOnceward() as testing:
        yield testing


@pytest.fixture
def tasks(
    redis_url: str, effects: Path, testing: TestingOnceward, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Runs a worker of two processes. Returns the module of its tasks."""
    for name, value in (
        ("REDIS_URL", redis_url),
        ("EFFECTS", str(effects)),
        ("ONCEWARD_ADDRESS", testing.address),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    sys.modules.pop("celery_tasks", None)
    import celery_tasks

    command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--concurrency", "2"]
    worker = subprocess.Popen(
        [*command, "--loglevel", "error", "--without-gossip", "--without-mingle"],
        cwd=Path(__file__).parent,
        env={**os.environ, "C_FORCE_ROOT": "1"},
    )
    try:
        yield celery_tasks
    finally:
        worker.terminate()
        worker.wait(_TIMEOUT_S)


def test_tasks_run_once_for_a_key(tasks: Any, effects: Path, testing: TestingOnceward) -> None:
    order = {"id": "order-1", "cents": 100}
    first, second = tasks.charge.delay(order), tasks.charge.delay(order)
    assert first.get(timeout=_TIMEOUT_S) == second.get(timeout=_TIMEOUT_S) == {"charge": "ch_order-1"}
    # A task that fails permanently fails again, and does not run again.
    dear = {"id": "order-2", "cents": 5000}
    for _ in range(2):
        with pytest.raises(Exception, match="too expensive"):
            tasks.charge.delay(dear).get(timeout=_TIMEOUT_S)
    assert effects.read_text().splitlines() == ["order-1 in attempt 1", "order-2 in attempt 1"]
    # A retry keeps the task's id, which is its key without another one; also after an outage of the service.
    testing.fail_next("Claim", "DATABASE_UNAVAILABLE")
    assert tasks.mail.delay("a@example.com").get(timeout=_TIMEOUT_S) == "sent"
    assert effects.read_text().splitlines()[2:] == [
        "mail to a@example.com in attempt 1",
        "mail to a@example.com in attempt 2",
    ]
    # At most once, a task that failed is not retried.
    with pytest.raises(ConnectionError, match="no route"):
        tasks.remind.delay().get(timeout=_TIMEOUT_S)
    assert effects.read_text().splitlines()[4:] == ["reminder"]
    # A worker process dies in the task, or the task can't know its outcome: the message is delivered again,
    # and waits until the lease is over. The two messages of order-1 may have met, too.
    met_before = testing.counts.in_progress
    unknown = tasks.refund.delay("order-5")
    _wait_until(lambda: testing.counts.in_progress > met_before)
    killed = tasks.charge.delay({"id": "order-3", "cents": 100, "kills": True})
    # The other message may meet its claim a second time meanwhile.
    _wait_until(lambda: "order-3" in effects.read_text() and testing.counts.in_progress > met_before + 1)
    testing.advance(30_000)
    assert killed.get(timeout=_TIMEOUT_S) == {"charge": "ch_order-3"}
    assert unknown.get(timeout=_TIMEOUT_S) == "refunded"
    assert sorted(effects.read_text().splitlines()[5:]) == [
        "order-3 in attempt 1",
        "order-3 in attempt 2",
        "refund of order-5 in attempt 1",
        "refund of order-5 in attempt 2",
    ]


def test_a_task_that_is_stopped_leaves_its_claim_to_the_policy(tasks: Any, testing: TestingOnceward) -> None:
    for name in ("limited", "caused"):
        with pytest.raises(Exception, match="SoftTimeLimitExceeded|the bank is slow"):
            tasks.transfer.delay(name).get(timeout=_TIMEOUT_S)
    assert {record.state for record in testing.records()} == {Record.STATE_IN_PROGRESS}


def test_a_task_fails_as_usual_if_another_operation_is_in_progress(
    tasks: Any, effects: Path, testing: TestingOnceward
) -> None:
    with testing.onceward.claim("accounts", "a-1") as scope:
        with pytest.raises(Exception, match="in progress"):
            tasks.transfer.delay("nested").get(timeout=_TIMEOUT_S)
        scope.release()
    assert effects.read_text().splitlines() == ["nested began"]
    [record] = [each for each in testing.records() if each.key == "nested"]
    assert record.state == Record.STATE_RELEASED


def test_a_coroutine_function_is_refused_as_a_task(testing: TestingOnceward) -> None:
    app = Celery(set_as_current=False)
    base = guarded_task(lambda: testing.onceward, "charges")

    async def charge() -> None: ...

    with pytest.raises(TypeError, match="charge is a coroutine function"):
        app.task(base=base, lazy=False)(charge)


def _wait_until(is_reached: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not is_reached():
        assert time.monotonic() < deadline_s, "the message was not delivered again"
        time.sleep(0.01)


def test_a_task_that_is_called_directly_is_guarded_by_its_key(tasks: Any, effects: Path) -> None:
    order = {"id": "order-4", "cents": 100}
    assert tasks.charge(order) == tasks.charge(order) == {"charge": "ch_order-4"}
    assert effects.read_text().splitlines() == ["order-4 in attempt 1"]
