"""Results and errors as outcomes have them."""

from __future__ import annotations

import asyncio
from typing import Any

from values import camel_case, write_value

from onceward import (
    AmbiguousError,
    BaseClaim,
    Checkpoint,
    CompletionError,
    InProgressError,
    NoEffectError,
    OncewardError,
    OutcomeUnknownError,
    RunResult,
    TerminalError,
)


class Left(BaseException):
    """Raised by the handler of a signal."""


def report_result(result: RunResult[Any]) -> dict[str, Any]:
    """Returns what a run that returned is in an outcome."""
    report: dict[str, Any] = {
        "value": write_value(result.value),
        "replayed": result.replayed,
        "guarded": result.guarded,
    }
    if result.guarded:
        report["expiresAt"] = result.expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if not result.replayed:
        report |= {"attempt": result.attempt, "fencingToken": str(result.fencing_token)}
    return report


def report_error(error: BaseException) -> dict[str, Any]:
    """Returns what an error is in an outcome."""
    if isinstance(error, OncewardError):
        return {"error": {**_describe(error), **_describe_kind(error)}}
    if isinstance(error, TerminalError):
        return {
            "terminal": {"name": error.name, "message": error.message, "details": write_value(error.details)}
        }
    if isinstance(error, OutcomeUnknownError):
        return {"unknown": str(error.__cause__ or error)}
    if isinstance(error, NoEffectError):
        return {"noEffect": str(error)}
    if isinstance(error, TimeoutError):
        return {"timeout": str(error)}
    if isinstance(error, SystemExit):
        return {"panicked": str(error)}
    if isinstance(error, (asyncio.CancelledError, Left)):
        return {"cancelled": True}
    return {"thrown": str(error)}


def _describe(error: OncewardError) -> dict[str, Any]:
    report: dict[str, Any] = {
        "class": type(error).__name__,
        "reason": error.reason,
        "metadata": error.metadata,
        "fields": [".".join(map(camel_case, each.field.split("."))) for each in error.violations],
        "violations": [{"field": each.field, "description": each.description} for each in error.violations],
        "remedy": error.remedy,
    }
    optional = {"code": error.code, "retryDelayMs": error.retry_delay_ms, "requestId": error.request_id}
    report |= {name: value for name, value in optional.items() if value is not None}
    if error.claim is not None:
        claim: dict[str, Any] = {"namespace": error.claim.namespace, "key": error.claim.key}
        if error.claim.fencing_token is not None:
            claim["fencingToken"] = str(error.claim.fencing_token)
        report["claim"] = claim
    return report


def _describe_kind(error: OncewardError) -> dict[str, Any]:
    if isinstance(error, InProgressError):
        return {"owner": error.owner, "attempt": error.attempt}
    if isinstance(error, AmbiguousError):
        report: dict[str, Any] = {"owner": error.owner, "attempt": error.attempt}
        return report if error.checkpoint is None else {**report, "checkpoint": _checkpoint(error.checkpoint)}
    if isinstance(error, CompletionError):
        effect = error.effect
        ended = {"value": write_value(effect.value)} if effect.error is None else report_error(effect.error)
        return {"stored": error.stored, "effect": ended}
    return {}


def describe_claim(claim: BaseClaim) -> dict[str, Any]:
    """Returns what a call of a function sees at its start."""
    seen: dict[str, Any] = {
        "guarded": claim.guarded,
        "namespace": claim.namespace,
        "key": claim.key,
        "attempt": claim.attempt,
        "fencingToken": str(claim.fencing_token),
        "derivedKeys": [],
    }
    return seen if claim.checkpoint is None else {**seen, "checkpoint": _checkpoint(claim.checkpoint)}


def _checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    return {"name": checkpoint.name, "state": write_value(checkpoint.state)}
