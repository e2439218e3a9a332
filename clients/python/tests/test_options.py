"""What is refused or known before anything is sent."""

import math

import pytest

import onceward
from onceward import InvalidRequestError, Onceward, OncewardError
from onceward._catalogue import _CLASSES
from onceward.aio import Onceward as AioOnceward


@pytest.mark.parametrize("client", [Onceward, AioOnceward])
def test_a_client_has_one_credential_that_can_be_sent(client: type[Onceward]) -> None:
    for credentials in ({}, {"api_key": "key", "token": lambda: "token"}, {"api_key": "key\n"}):
        with pytest.raises(InvalidRequestError):
            client("http://localhost:50051", **credentials)  # type: ignore[arg-type]


@pytest.mark.parametrize("after_ms", [-1, math.nan, math.inf])
def test_a_time_after_which_to_ask_again_is_finite(after_ms: float) -> None:
    with pytest.raises(InvalidRequestError):
        onceward.StillOpen(after_ms)


def test_every_class_is_published_and_has_a_remedy() -> None:
    for known in _CLASSES.values():
        assert known("refused").remedy
        assert getattr(onceward, known.__name__) is known


def test_a_reason_of_a_newer_service_has_no_remedy() -> None:
    assert OncewardError("MOON_PHASE", "not tonight").remedy is None
