"""ConsumerProtocolSubscription; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int32


class TopicPartition(Message):
    topic: Annotated[str, V("1+")] = ""
    partitions: Annotated[list[int32], V("1+")] = []


class ConsumerProtocolSubscription(Message):
    topics: list[str] = []
    user_data: bytes | None = None
    owned_partitions: Annotated[list[TopicPartition], V("1+")] = []
    generation_id: Annotated[int32, V("2+")] = -1
    rack_id: Annotated[str | None, V("3+")] = None
