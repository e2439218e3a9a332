import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from onceward.v1 import facts_pb2 as _facts_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Policy(_message.Message):
    __slots__ = ("key_retention", "result_retention", "failure_retention", "default_lease", "max_lease", "on_lease_expiry", "reclaim_within", "max_result_bytes", "require_fingerprint", "late_keys", "provider_link")
    class OnLeaseExpiry(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ON_LEASE_EXPIRY_UNSPECIFIED: _ClassVar[Policy.OnLeaseExpiry]
        ON_LEASE_EXPIRY_RECLAIM: _ClassVar[Policy.OnLeaseExpiry]
        ON_LEASE_EXPIRY_HOLD: _ClassVar[Policy.OnLeaseExpiry]
    ON_LEASE_EXPIRY_UNSPECIFIED: Policy.OnLeaseExpiry
    ON_LEASE_EXPIRY_RECLAIM: Policy.OnLeaseExpiry
    ON_LEASE_EXPIRY_HOLD: Policy.OnLeaseExpiry
    class LateKeys(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        LATE_KEYS_UNSPECIFIED: _ClassVar[Policy.LateKeys]
        LATE_KEYS_RUN: _ClassVar[Policy.LateKeys]
        LATE_KEYS_REFUSE: _ClassVar[Policy.LateKeys]
        LATE_KEYS_REQUIRE_TIME: _ClassVar[Policy.LateKeys]
    LATE_KEYS_UNSPECIFIED: Policy.LateKeys
    LATE_KEYS_RUN: Policy.LateKeys
    LATE_KEYS_REFUSE: Policy.LateKeys
    LATE_KEYS_REQUIRE_TIME: Policy.LateKeys
    KEY_RETENTION_FIELD_NUMBER: _ClassVar[int]
    RESULT_RETENTION_FIELD_NUMBER: _ClassVar[int]
    FAILURE_RETENTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_LEASE_FIELD_NUMBER: _ClassVar[int]
    MAX_LEASE_FIELD_NUMBER: _ClassVar[int]
    ON_LEASE_EXPIRY_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_WITHIN_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    LATE_KEYS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_LINK_FIELD_NUMBER: _ClassVar[int]
    key_retention: _duration_pb2.Duration
    result_retention: _duration_pb2.Duration
    failure_retention: _duration_pb2.Duration
    default_lease: _duration_pb2.Duration
    max_lease: _duration_pb2.Duration
    on_lease_expiry: Policy.OnLeaseExpiry
    reclaim_within: _duration_pb2.Duration
    max_result_bytes: int
    require_fingerprint: bool
    late_keys: Policy.LateKeys
    provider_link: str
    def __init__(self, key_retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., result_retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., failure_retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., default_lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., on_lease_expiry: _Optional[_Union[Policy.OnLeaseExpiry, str]] = ..., reclaim_within: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_result_bytes: _Optional[int] = ..., require_fingerprint: bool = ..., late_keys: _Optional[_Union[Policy.LateKeys, str]] = ..., provider_link: _Optional[str] = ...) -> None: ...

class PolicyBounds(_message.Message):
    __slots__ = ("min_key_retention", "max_key_retention", "max_lease", "max_result_bytes")
    MIN_KEY_RETENTION_FIELD_NUMBER: _ClassVar[int]
    MAX_KEY_RETENTION_FIELD_NUMBER: _ClassVar[int]
    MAX_LEASE_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    min_key_retention: _duration_pb2.Duration
    max_key_retention: _duration_pb2.Duration
    max_lease: _duration_pb2.Duration
    max_result_bytes: int
    def __init__(self, min_key_retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_key_retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_result_bytes: _Optional[int] = ...) -> None: ...

class Quotas(_message.Message):
    __slots__ = ("operations_per_second", "burst", "concurrent_calls", "live_records", "stored_bytes", "weight", "dry_run", "declared_namespaces")
    OPERATIONS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    CONCURRENT_CALLS_FIELD_NUMBER: _ClassVar[int]
    LIVE_RECORDS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    DECLARED_NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    operations_per_second: int
    burst: int
    concurrent_calls: int
    live_records: int
    stored_bytes: int
    weight: int
    dry_run: bool
    declared_namespaces: int
    def __init__(self, operations_per_second: _Optional[int] = ..., burst: _Optional[int] = ..., concurrent_calls: _Optional[int] = ..., live_records: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., weight: _Optional[int] = ..., dry_run: bool = ..., declared_namespaces: _Optional[int] = ...) -> None: ...
