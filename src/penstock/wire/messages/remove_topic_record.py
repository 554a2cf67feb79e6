"""RemoveTopicRecord; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message


class RemoveTopicRecord(Message):
    topic_id: Uuid = NO_UUID
