"""TopicRecord; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message


class TopicRecord(Message):
    name: str = ""
    topic_id: Uuid = NO_UUID
