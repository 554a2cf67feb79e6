"""AccessControlEntryRecord; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int8


class AccessControlEntryRecord(Message):
    id: Uuid = NO_UUID
    resource_type: int8 = 0
    resource_name: str = ""
    pattern_type: int8 = 0
    principal: str = ""
    host: str = ""
    operation: int8 = 0
    permission_type: int8 = 0
