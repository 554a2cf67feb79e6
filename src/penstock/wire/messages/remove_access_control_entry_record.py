"""RemoveAccessControlEntryRecord; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message


class RemoveAccessControlEntryRecord(Message):
    id: Uuid = NO_UUID
