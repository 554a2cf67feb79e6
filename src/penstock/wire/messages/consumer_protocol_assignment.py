"""ConsumerProtocolAssignment; written by codegen."""

from penstock.wire.schema import Message, int32


class TopicPartition(Message):
    topic: str = ""
    partitions: list[int32] = []


class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartition] = []
    user_data: bytes | None = None
