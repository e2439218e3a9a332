from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
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
REASON_CLASS_UNSPECIFIED: ReasonClass
REASON_CLASS_RETRY: ReasonClass
REASON_CLASS_WAIT: ReasonClass
REASON_CLASS_ASK: ReasonClass
REASON_CLASS_GONE: ReasonClass
REASON_CLASS_REUSED: ReasonClass
REASON_CLASS_TOO_OLD: ReasonClass
REASON_CLASS_FIX: ReasonClass
REASON_FIELD_NUMBER: _ClassVar[int]
reason: _descriptor.FieldDescriptor
REMEDY_FIELD_NUMBER: _ClassVar[int]
remedy: _descriptor.FieldDescriptor

class ReasonFacts(_message.Message):
    __slots__ = ("code", "reason_class", "may_have_happened")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_CLASS_FIELD_NUMBER: _ClassVar[int]
    MAY_HAVE_HAPPENED_FIELD_NUMBER: _ClassVar[int]
    code: str
    reason_class: ReasonClass
    may_have_happened: bool
    def __init__(self, code: _Optional[str] = ..., reason_class: _Optional[_Union[ReasonClass, str]] = ..., may_have_happened: bool = ...) -> None: ...
