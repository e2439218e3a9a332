import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from onceward.v1 import facts_pb2 as _facts_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Result(_message.Message):
    __slots__ = ("kind", "payload", "content_type", "metadata")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Result.Kind]
        KIND_SUCCESS: _ClassVar[Result.Kind]
        KIND_FAILURE: _ClassVar[Result.Kind]
    KIND_UNSPECIFIED: Result.Kind
    KIND_SUCCESS: Result.Kind
    KIND_FAILURE: Result.Kind
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    kind: Result.Kind
    payload: bytes
    content_type: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, kind: _Optional[_Union[Result.Kind, str]] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("name", "state")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: bytes
    def __init__(self, name: _Optional[str] = ..., state: _Optional[bytes] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("namespace", "key", "state", "fencing_token", "attempt", "owner", "fingerprint", "first_claimed_at", "claimed_at", "lease_expires_at", "completed_at", "released_at", "release_reason", "result", "result_expired", "checkpoint", "result_expires_at", "expires_at")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Record.State]
        STATE_IN_PROGRESS: _ClassVar[Record.State]
        STATE_COMPLETED: _ClassVar[Record.State]
        STATE_RELEASED: _ClassVar[Record.State]
        STATE_AMBIGUOUS: _ClassVar[Record.State]
    STATE_UNSPECIFIED: Record.State
    STATE_IN_PROGRESS: Record.State
    STATE_COMPLETED: Record.State
    STATE_RELEASED: Record.State
    STATE_AMBIGUOUS: Record.State
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FIRST_CLAIMED_AT_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    RELEASED_AT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_REASON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    RESULT_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    state: Record.State
    fencing_token: int
    attempt: int
    owner: str
    fingerprint: bytes
    first_claimed_at: _timestamp_pb2.Timestamp
    claimed_at: _timestamp_pb2.Timestamp
    lease_expires_at: _timestamp_pb2.Timestamp
    completed_at: _timestamp_pb2.Timestamp
    released_at: _timestamp_pb2.Timestamp
    release_reason: str
    result: Result
    result_expired: bool
    checkpoint: Checkpoint
    result_expires_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., state: _Optional[_Union[Record.State, str]] = ..., fencing_token: _Optional[int] = ..., attempt: _Optional[int] = ..., owner: _Optional[str] = ..., fingerprint: _Optional[bytes] = ..., first_claimed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., claimed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lease_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., released_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., release_reason: _Optional[str] = ..., result: _Optional[_Union[Result, _Mapping]] = ..., result_expired: bool = ..., checkpoint: _Optional[_Union[Checkpoint, _Mapping]] = ..., result_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("number", "owner", "fencing_token", "claimed_at", "ended_at", "ending", "reason", "checkpoint", "record_job")
    class Ending(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ENDING_UNSPECIFIED: _ClassVar[Attempt.Ending]
        ENDING_HELD: _ClassVar[Attempt.Ending]
        ENDING_SUPERSEDED: _ClassVar[Attempt.Ending]
        ENDING_RELEASED: _ClassVar[Attempt.Ending]
        ENDING_COMPLETED: _ClassVar[Attempt.Ending]
        ENDING_RESOLVED: _ClassVar[Attempt.Ending]
        ENDING_GIVEN_BACK: _ClassVar[Attempt.Ending]
        ENDING_SETTLED: _ClassVar[Attempt.Ending]
    ENDING_UNSPECIFIED: Attempt.Ending
    ENDING_HELD: Attempt.Ending
    ENDING_SUPERSEDED: Attempt.Ending
    ENDING_RELEASED: Attempt.Ending
    ENDING_COMPLETED: Attempt.Ending
    ENDING_RESOLVED: Attempt.Ending
    ENDING_GIVEN_BACK: Attempt.Ending
    ENDING_SETTLED: Attempt.Ending
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    RECORD_JOB_FIELD_NUMBER: _ClassVar[int]
    number: int
    owner: str
    fencing_token: int
    claimed_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    ending: Attempt.Ending
    reason: str
    checkpoint: str
    record_job: int
    def __init__(self, number: _Optional[int] = ..., owner: _Optional[str] = ..., fencing_token: _Optional[int] = ..., claimed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ending: _Optional[_Union[Attempt.Ending, str]] = ..., reason: _Optional[str] = ..., checkpoint: _Optional[str] = ..., record_job: _Optional[int] = ...) -> None: ...
