"""Each program of the examples delivers an operation several times, and exits with 0 if it happened once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onceward.testing import TestingOnceward

_EXAMPLES = Path(__file__).parents[2] / "examples"
_EXPECTED = {
    "agent": "the model reads: refunded order 7\n2 starts of the process, 1 refund\n",
    "events": "the event was settled, with 1 shipment; forged: 401\n",
    "mails": "6 messages, 3 mails\n",
    "payments": "4 deliveries, 1 charge; another amount: 422\n",
    "webhooks": "3 deliveries, 1 invoice\n",
}


def test_each_example_is_run() -> None:
    assert sorted(_EXPECTED) == sorted(path.stem for path in _EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", _EXPECTED)
def test_an_example_has_one_effect(name: str, request: pytest.FixtureRequest) -> None:
    env = {**os.environ, "ONCEWARD_API_KEY": "testing"}
    if name == "mails":
        env["REDIS_URL"] = request.getfixturevalue("redis_url")
    if name == "webhooks":
        if "ONCEWARD_TEST_DATABASE" not in os.environ:
            pytest.skip("ONCEWARD_TEST_DATABASE names no Postgres")
        env["DATABASE_URL"] = os.environ["ONCEWARD_TEST_DATABASE"]
    with TestingOnceward() as testing:
        env["ONCEWARD_ADDRESS"] = testing.address
        program = [sys.executable, str(_EXAMPLES / f"{name}.py")]
        ended = subprocess.run(program, env=env, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (0, _EXPECTED[name]), ended.stderr
