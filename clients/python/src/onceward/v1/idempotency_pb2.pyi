import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from onceward.v1 import errors_pb2 as _errors_pb2
from onceward.v1 import facts_pb2 as _facts_pb2
from onceward.v1 import record_pb2 as _record_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClaimRequest(_message.Message):
    __slots__ = ("namespace", "key", "fingerprint", "claim_id", "lease", "retention", "wait", "owner", "accept_ambiguous", "key_created_at", "completion", "marks_begin")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    CLAIM_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_AMBIGUOUS_FIELD_NUMBER: _ClassVar[int]
    KEY_CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    MARKS_BEGIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    fingerprint: bytes
    claim_id: str
    lease: _duration_pb2.Duration
    retention: _duration_pb2.Duration
    wait: _duration_pb2.Duration
    owner: str
    accept_ambiguous: bool
    key_created_at: _timestamp_pb2.Timestamp
    completion: Completion
    marks_begin: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., fingerprint: _Optional[bytes] = ..., claim_id: _Optional[str] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., accept_ambiguous: bool = ..., key_created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completion: _Optional[_Union[Completion, _Mapping]] = ..., marks_begin: bool = ...) -> None: ...

class Completion(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ClaimResponse(_message.Message):
    __slots__ = ("claimed", "in_progress", "completed", "ambiguous", "recorded", "expires_at", "server_time")
    CLAIMED_FIELD_NUMBER: _ClassVar[int]
    IN_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    AMBIGUOUS_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    claimed: Claimed
    in_progress: InProgress
    completed: Completed
    ambiguous: Ambiguous
    recorded: Recorded
    expires_at: _timestamp_pb2.Timestamp
    server_time: _timestamp_pb2.Timestamp
    def __init__(self, claimed: _Optional[_Union[Claimed, _Mapping]] = ..., in_progress: _Optional[_Union[InProgress, _Mapping]] = ..., completed: _Optional[_Union[Completed, _Mapping]] = ..., ambiguous: _Optional[_Union[Ambiguous, _Mapping]] = ..., recorded: _Optional[_Union[Recorded, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Claimed(_message.Message):
    __slots__ = ("fencing_token", "lease_expires_at", "lease_remaining", "attempt", "first_claimed_at", "checkpoint", "unknown")
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_REMAINING_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FIRST_CLAIMED_AT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    fencing_token: int
    lease_expires_at: _timestamp_pb2.Timestamp
    lease_remaining: _duration_pb2.Duration
    attempt: int
    first_claimed_at: _timestamp_pb2.Timestamp
    checkpoint: _record_pb2.Checkpoint
    unknown: Ambiguous
    def __init__(self, fencing_token: _Optional[int] = ..., lease_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lease_remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., attempt: _Optional[int] = ..., first_claimed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., checkpoint: _Optional[_Union[_record_pb2.Checkpoint, _Mapping]] = ..., unknown: _Optional[_Union[Ambiguous, _Mapping]] = ...) -> None: ...

class InProgress(_message.Message):
    __slots__ = ("owner", "attempt", "lease_expires_at", "retry_after")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    owner: str
    attempt: int
    lease_expires_at: _timestamp_pb2.Timestamp
    retry_after: _duration_pb2.Duration
    def __init__(self, owner: _Optional[str] = ..., attempt: _Optional[int] = ..., lease_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Completed(_message.Message):
    __slots__ = ("result", "result_expired", "completed_at")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    result: _record_pb2.Result
    result_expired: bool
    completed_at: _timestamp_pb2.Timestamp
    def __init__(self, result: _Optional[_Union[_record_pb2.Result, _Mapping]] = ..., result_expired: bool = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Ambiguous(_message.Message):
    __slots__ = ("owner", "attempt", "lease_expired_at", "checkpoint")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRED_AT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    owner: str
    attempt: int
    lease_expired_at: _timestamp_pb2.Timestamp
    checkpoint: _record_pb2.Checkpoint
    def __init__(self, owner: _Optional[str] = ..., attempt: _Optional[int] = ..., lease_expired_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., checkpoint: _Optional[_Union[_record_pb2.Checkpoint, _Mapping]] = ...) -> None: ...

class Recorded(_message.Message):
    __slots__ = ("completed_at",)
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    completed_at: _timestamp_pb2.Timestamp
    def __init__(self, completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CompleteRequest(_message.Message):
    __slots__ = ("namespace", "key", "fencing_token", "result", "retention")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    fencing_token: int
    result: _record_pb2.Result
    retention: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., fencing_token: _Optional[int] = ..., result: _Optional[_Union[_record_pb2.Result, _Mapping]] = ..., retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CompleteResponse(_message.Message):
    __slots__ = ("completed_at", "expires_at", "already_completed")
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ALREADY_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    completed_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    already_completed: bool
    def __init__(self, completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., already_completed: bool = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("namespace", "key", "fencing_token", "reason", "give_back")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GIVE_BACK_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    fencing_token: int
    reason: str
    give_back: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., fencing_token: _Optional[int] = ..., reason: _Optional[str] = ..., give_back: bool = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ("expires_at",)
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ExtendLeaseRequest(_message.Message):
    __slots__ = ("namespace", "key", "fencing_token", "lease", "checkpoint", "begin")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    fencing_token: int
    lease: _duration_pb2.Duration
    checkpoint: _record_pb2.Checkpoint
    begin: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., fencing_token: _Optional[int] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., checkpoint: _Optional[_Union[_record_pb2.Checkpoint, _Mapping]] = ..., begin: bool = ...) -> None: ...

class ExtendLeaseResponse(_message.Message):
    __slots__ = ("lease_expires_at", "lease_remaining", "expires_at")
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_REMAINING_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    lease_expires_at: _timestamp_pb2.Timestamp
    lease_remaining: _duration_pb2.Duration
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, lease_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lease_remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class LookupRequest(_message.Message):
    __slots__ = ("namespace", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class LookupResponse(_message.Message):
    __slots__ = ("record", "server_time")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    record: _record_pb2.Record
    server_time: _timestamp_pb2.Timestamp
    def __init__(self, record: _Optional[_Union[_record_pb2.Record, _Mapping]] = ..., server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class BatchRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[BatchRequestItem]
    def __init__(self, items: _Optional[_Iterable[_Union[BatchRequestItem, _Mapping]]] = ...) -> None: ...

class BatchStreamRequest(_message.Message):
    __slots__ = ("items", "id", "timeout", "traceparent")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[BatchRequestItem]
    id: int
    timeout: _duration_pb2.Duration
    traceparent: str
    def __init__(self, items: _Optional[_Iterable[_Union[BatchRequestItem, _Mapping]]] = ..., id: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class BatchRequestItem(_message.Message):
    __slots__ = ("claim", "complete", "release", "extend_lease", "lookup", "traceparent")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    EXTEND_LEASE_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    claim: ClaimRequest
    complete: CompleteRequest
    release: ReleaseRequest
    extend_lease: ExtendLeaseRequest
    lookup: LookupRequest
    traceparent: str
    def __init__(self, claim: _Optional[_Union[ClaimRequest, _Mapping]] = ..., complete: _Optional[_Union[CompleteRequest, _Mapping]] = ..., release: _Optional[_Union[ReleaseRequest, _Mapping]] = ..., extend_lease: _Optional[_Union[ExtendLeaseRequest, _Mapping]] = ..., lookup: _Optional[_Union[LookupRequest, _Mapping]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class BatchResponse(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[BatchResponseItem]
    def __init__(self, items: _Optional[_Iterable[_Union[BatchResponseItem, _Mapping]]] = ...) -> None: ...

class BatchStreamResponse(_message.Message):
    __slots__ = ("items", "id", "error")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[BatchResponseItem]
    id: int
    error: BatchItemError
    def __init__(self, items: _Optional[_Iterable[_Union[BatchResponseItem, _Mapping]]] = ..., id: _Optional[int] = ..., error: _Optional[_Union[BatchItemError, _Mapping]] = ...) -> None: ...

class BatchResponseItem(_message.Message):
    __slots__ = ("claim", "complete", "release", "extend_lease", "lookup", "error")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    EXTEND_LEASE_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    claim: ClaimResponse
    complete: CompleteResponse
    release: ReleaseResponse
    extend_lease: ExtendLeaseResponse
    lookup: LookupResponse
    error: BatchItemError
    def __init__(self, claim: _Optional[_Union[ClaimResponse, _Mapping]] = ..., complete: _Optional[_Union[CompleteResponse, _Mapping]] = ..., release: _Optional[_Union[ReleaseResponse, _Mapping]] = ..., extend_lease: _Optional[_Union[ExtendLeaseResponse, _Mapping]] = ..., lookup: _Optional[_Union[LookupResponse, _Mapping]] = ..., error: _Optional[_Union[BatchItemError, _Mapping]] = ...) -> None: ...

class BatchItemError(_message.Message):
    __slots__ = ("code", "reason", "message", "metadata", "field_violations", "retry_delay", "request_id")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    FIELD_VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: _errors_pb2.ErrorReason
    message: str
    metadata: _containers.ScalarMap[str, str]
    field_violations: _containers.RepeatedCompositeFieldContainer[FieldViolation]
    retry_delay: _duration_pb2.Duration
    request_id: str
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[_Union[_errors_pb2.ErrorReason, str]] = ..., message: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., field_violations: _Optional[_Iterable[_Union[FieldViolation, _Mapping]]] = ..., retry_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class FieldViolation(_message.Message):
    __slots__ = ("field", "description")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    field: str
    description: str
    def __init__(self, field: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...
