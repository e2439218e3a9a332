"""The limits of the contract that the client checks before it sends a request, to name the mistake."""

import re
from typing import Any

from google.protobuf.message import Message

from .v1 import facts_pb2
from .v1.idempotency_pb2 import BatchRequest, ClaimRequest
from .v1.policy_pb2 import Policy
from .v1.record_pb2 import Checkpoint, Record, Result


def _option(descriptor: Any, extension: Any) -> Any:
    return descriptor.GetOptions().Extensions[extension]


def _facts_of(message: type[Message], field: str) -> facts_pb2.FieldFacts:
    facts: facts_pb2.FieldFacts = _option(message.DESCRIPTOR.fields_by_name[field], facts_pb2.field)
    return facts


def _max_of(message: type[Message], field: str) -> int:
    return _facts_of(message, field).max


def _default_ms(field: str) -> int:
    text = _facts_of(Policy, field).default
    return int(text[:-1]) * _UNIT_MS[text[-1]]


_NAMESPACE = _facts_of(Record, "namespace")
_METADATA = _facts_of(Result, "metadata")
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000}
_LEASE = _facts_of(Policy, "default_lease")


MAX_KEY_BYTES = _max_of(Record, "key")
NAMESPACE_PATTERN = re.compile(_NAMESPACE.pattern)
#: NAMESPACE_PATTERN in words, as the service's errors have it.
NAMESPACE_RULE = _NAMESPACE.rule
FINGERPRINT_BYTES = _max_of(Record, "fingerprint")
MAX_OWNER_BYTES = _max_of(Record, "owner")
MAX_CLAIM_ID_BYTES = _max_of(ClaimRequest, "claim_id")
MAX_RELEASE_REASON_BYTES = _max_of(Record, "release_reason")
MAX_CHECKPOINT_NAME_BYTES = _max_of(Checkpoint, "name")
MAX_CHECKPOINT_STATE_BYTES = _max_of(Checkpoint, "state")
#: The largest result of any policy. Most policies allow less, which only the service knows.
MAX_RESULT_BYTES = _max_of(Result, "payload")
MAX_CONTENT_TYPE_BYTES = _max_of(Result, "content_type")
MAX_METADATA_ENTRIES = _METADATA.max
MAX_METADATA_NAME_BYTES = _METADATA.keys.max
MAX_METADATA_VALUE_BYTES = _METADATA.values.max
#: All of a result's metadata, as JSON in UTF-8.
MAX_METADATA_BYTES = _METADATA.max_json_bytes
#: The lease of a run that leaves it to a policy that does not set one.
DEFAULT_LEASE_MS = _default_ms("default_lease")
MIN_LEASE_MS = _LEASE.min
#: The longest lease of any policy. Most policies allow less, which only the service knows.
MAX_LEASE_MS = _LEASE.max
#: Of a policy that does not set them.
DEFAULT_MAX_LEASE_MS = _default_ms("max_lease")
DEFAULT_KEY_RETENTION_S = _default_ms("key_retention") // 1000
DEFAULT_MAX_RESULT_BYTES = int(_facts_of(Policy, "max_result_bytes").default)
#: How far a key's time may be ahead of the service's clock.
MAX_KEY_AHEAD_MS = _max_of(ClaimRequest, "key_created_at")
#: The longest wait of one Claim; a longer wait takes several calls.
MAX_WAIT_MS = _max_of(ClaimRequest, "wait")
MAX_BATCH_ITEMS = _max_of(BatchRequest, "items")
MAX_MESSAGE_BYTES: int = _option(BatchRequest.DESCRIPTOR, facts_pb2.message).max_bytes
