"""Onceward: an operation runs once, however often its request is delivered."""

from . import _catalogue
from ._catalogue import *  # noqa: F403
from ._claims import BaseClaim, current_claim
from ._client import Claim, ClaimScope, Onceward
from ._codec import BytesCodec, Codec, Encoded, JsonCodec
from ._errors import (
    AmbiguousError,
    Checkpoint,
    ClaimRef,
    CompletionError,
    Effect,
    InProgressError,
    NoEffectError,
    OncewardError,
    OutcomeUnknownError,
    ResultUnavailableError,
    TerminalError,
    Violation,
)
from ._fingerprint import fingerprint_of
from ._keys import derive_key, format_idempotency_key, join_key, parse_idempotency_key
from ._keytime import key_time, new_key
from ._options import OnceOptions, RunOptions, RunResult
from ._resolve import DidNotHappen, Happened, Resolution, StillOpen, Unknown

__all__ = [
    "AmbiguousError",
    "BaseClaim",
    "BytesCodec",
    "Checkpoint",
    "Claim",
    "ClaimRef",
    "ClaimScope",
    "Codec",
    "CompletionError",
    "DidNotHappen",
    "Effect",
    "Encoded",
    "Happened",
    "InProgressError",
    "JsonCodec",
    "NoEffectError",
    "OnceOptions",
    "Onceward",
    "OncewardError",
    "OutcomeUnknownError",
    "Resolution",
    "ResultUnavailableError",
    "RunOptions",
    "RunResult",
    "StillOpen",
    "TerminalError",
    "Unknown",
    "Violation",
    "current_claim",
    "derive_key",
    "fingerprint_of",
    "format_idempotency_key",
    "join_key",
    "key_time",
    "new_key",
    "parse_idempotency_key",
]
__all__ += _catalogue.__all__
