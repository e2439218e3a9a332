from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReasonClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_CLASS_UNSPECIFIED: _ClassVar[ReasonClass]
    REASON_CLASS_RETRY: _ClassVar[ReasonClass]
    REASON_CLASS_WAIT: _ClassVar[ReasonClass]
    REASON_CLASS_ASK: _ClassVar[ReasonClass]
    REASON_CLASS_GONE: _ClassVar[ReasonClass]
    REASON_CLASS_REUSED: _ClassVar[ReasonClass]
    REASON_CLASS_TOO_OLD: _ClassVar[ReasonClass]
    REASON_CLASS_FIX: _ClassVar[ReasonClass]

class Unit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNIT_UNSPECIFIED: _ClassVar[Unit]
    UNIT_SECONDS: _ClassVar[Unit]
    UNIT_BYTES: _ClassVar[Unit]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_CALLER: _ClassVar[Role]
    ROLE_TENANT_ADMIN: _ClassVar[Role]
    ROLE_OPERATOR: _ClassVar[Role]
    ROLE_ANY: _ClassVar[Role]
REASON_CLASS_UNSPECIFIED: ReasonClass
REASON_CLASS_RETRY: ReasonClass
REASON_CLASS_WAIT: ReasonClass
REASON_CLASS_ASK: ReasonClass
REASON_CLASS_GONE: ReasonClass
REASON_CLASS_REUSED: ReasonClass
REASON_CLASS_TOO_OLD: ReasonClass
REASON_CLASS_FIX: ReasonClass
UNIT_UNSPECIFIED: Unit
UNIT_SECONDS: Unit
UNIT_BYTES: Unit
ROLE_UNSPECIFIED: Role
ROLE_CALLER: Role
ROLE_TENANT_ADMIN: Role
ROLE_OPERATOR: Role
ROLE_ANY: Role
REASON_FIELD_NUMBER: _ClassVar[int]
reason: _descriptor.FieldDescriptor
REMEDY_FIELD_NUMBER: _ClassVar[int]
remedy: _descriptor.FieldDescriptor
FIELD_FIELD_NUMBER: _ClassVar[int]
field: _descriptor.FieldDescriptor
ROLE_FIELD_NUMBER: _ClassVar[int]
role: _descriptor.FieldDescriptor
MESSAGE_FIELD_NUMBER: _ClassVar[int]
message: _descriptor.FieldDescriptor

class ReasonFacts(_message.Message):
    __slots__ = ("code", "reason_class", "may_have_happened", "claim_is_over")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_CLASS_FIELD_NUMBER: _ClassVar[int]
    MAY_HAVE_HAPPENED_FIELD_NUMBER: _ClassVar[int]
    CLAIM_IS_OVER_FIELD_NUMBER: _ClassVar[int]
    code: str
    reason_class: ReasonClass
    may_have_happened: bool
    claim_is_over: bool
    def __init__(self, code: _Optional[str] = ..., reason_class: _Optional[_Union[ReasonClass, str]] = ..., may_have_happened: bool = ..., claim_is_over: bool = ...) -> None: ...

class FieldFacts(_message.Message):
    __slots__ = ("min", "max", "default", "label", "help", "unit", "pattern", "rule", "default_from", "required", "same_as", "keys", "values", "max_json_bytes")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    HELP_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FROM_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    SAME_AS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    MAX_JSON_BYTES_FIELD_NUMBER: _ClassVar[int]
    min: int
    max: int
    default: str
    label: str
    help: str
    unit: Unit
    pattern: str
    rule: str
    default_from: str
    required: bool
    same_as: str
    keys: FieldFacts
    values: FieldFacts
    max_json_bytes: int
    def __init__(self, min: _Optional[int] = ..., max: _Optional[int] = ..., default: _Optional[str] = ..., label: _Optional[str] = ..., help: _Optional[str] = ..., unit: _Optional[_Union[Unit, str]] = ..., pattern: _Optional[str] = ..., rule: _Optional[str] = ..., default_from: _Optional[str] = ..., required: bool = ..., same_as: _Optional[str] = ..., keys: _Optional[_Union[FieldFacts, _Mapping]] = ..., values: _Optional[_Union[FieldFacts, _Mapping]] = ..., max_json_bytes: _Optional[int] = ...) -> None: ...

class MessageFacts(_message.Message):
    __slots__ = ("max_bytes",)
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_bytes: int
    def __init__(self, max_bytes: _Optional[int] = ...) -> None: ...
