"""Checkpoints: progress that a later attempt gets."""

from __future__ import annotations

from typing import Any

from ._codec import decode_json, encode_json
from ._errors import Checkpoint, OncewardError, Violation
from ._limits import MAX_CHECKPOINT_NAME_BYTES, MAX_CHECKPOINT_STATE_BYTES
from ._texts import raise_if_any, text_violations
from .v1 import record_pb2


def write_checkpoint(name: str, state: Any) -> record_pb2.Checkpoint:
    """Returns a checkpoint with its state as JSON; None becomes no bytes.

    :raises OncewardError: INVALID_REQUEST, RESULT_NOT_JSON.
    """
    data = b"" if state is None else encode_json(state)
    violations = text_violations("checkpoint.name", name, 1, MAX_CHECKPOINT_NAME_BYTES)
    if len(data) > MAX_CHECKPOINT_STATE_BYTES:
        description = f"must be at most {MAX_CHECKPOINT_STATE_BYTES} bytes as JSON, is {len(data)}"
        violations.append(Violation("checkpoint.state", description))
    raise_if_any(violations)
    return record_pb2.Checkpoint(name=name, state=data)


def read_checkpoint(checkpoint: record_pb2.Checkpoint) -> Checkpoint:
    """Returns a saved checkpoint with its state parsed. Bytes that are not JSON stay bytes."""
    try:
        return Checkpoint(checkpoint.name, decode_json(checkpoint.state))
    except OncewardError:
        return Checkpoint(checkpoint.name, checkpoint.state)
