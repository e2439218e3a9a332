"""Calls of the service in memory, onceward.testing."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import grpc
from google.protobuf import json_format
from reports import report_error
from values import snake_case

from onceward._connection import path_of, response_class
from onceward._mapping import error_from_call
from onceward.testing import TestingOnceward, TestingPolicy
from onceward.v1 import idempotency_pb2

#: The initial time of the service's clock.
_NOW = datetime(2029, 1, 1, tzinfo=timezone.utc)


def perform_service(case: dict[str, Any]) -> object:
    """Makes the calls of a case. Returns the answer to each."""
    policy = {snake_case(name): value for name, value in case.get("policy", {}).items()}
    answers: list[object] = []
    tokens: list[str] = []
    with (
        TestingOnceward(policy=TestingPolicy(**policy), now=_NOW) as testing,
        grpc.insecure_channel(testing.address.removeprefix("http://")) as channel,
    ):
        for step in case["steps"]:
            if "advanceMs" in step:
                testing.advance(step["advanceMs"])
            elif "failNext" in step:
                testing.fail_next(_method(step["failNext"]), step["reason"])
            elif "loseNextReply" in step:
                testing.lose_next_reply(_method(step["loseNextReply"]))
            else:
                answers.append(_call(channel, _method(step["call"]), dict(step["request"]), tokens))
    return {"answers": answers}


def _method(name: str) -> Any:
    return name[0].upper() + name[1:]


def _call(channel: grpc.Channel, method: str, given: dict[str, Any], tokens: list[str]) -> object:
    """Makes a call. Tokens are "#1", "#2", … in the order in which claims were granted."""
    if given.get("fencingToken", "").startswith("#"):
        given["fencingToken"] = tokens[int(given["fencingToken"][1:]) - 1]
    request = json_format.ParseDict(given, getattr(idempotency_pb2, f"{method}Request")())
    call: Any = channel.unary_unary(
        path_of(method),
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=response_class(method).FromString,  # type: ignore[attr-defined]
    )
    try:
        response = json_format.MessageToDict(call(request, timeout=10))
    except grpc.RpcError as error:
        refused = error_from_call(error)
        report: Any = report_error(refused)
        # As the service names them: these requests are its messages.
        report["error"]["fields"] = [each.field for each in refused.violations]
        return report
    claimed = response.get("claimed")
    if claimed is not None and claimed["fencingToken"] not in tokens:
        tokens.append(claimed["fencingToken"])
    for part in (claimed, response.get("record")):
        if part is not None:
            if part["fencingToken"] not in tokens:
                tokens.append(part["fencingToken"])
            part["fencingToken"] = f"#{tokens.index(part['fencingToken']) + 1}"
    return {"response": response}
