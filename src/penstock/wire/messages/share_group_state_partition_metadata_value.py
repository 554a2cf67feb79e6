"""ShareGroupStatePartitionMetadataValue; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int32


class TopicPartitionsInfo(Message):
    topic_id: Uuid = NO_UUID
    topic_name: str = ""
    partitions: list[int32] = []


class TopicInfo(Message):
    topic_id: Uuid = NO_UUID
    topic_name: str = ""


class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []
