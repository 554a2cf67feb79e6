"""DescribeQuorum (key 55); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32, int64, uint16


class PartitionData(Message):
    partition_index: int32 = 0


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []


class DescribeQuorumRequest(Message):
    topics: list[TopicData] = []


class ReplicaState(Message):
    replica_id: int32 = 0
    replica_directory_id: Annotated[Uuid, V("2+")] = NO_UUID
    log_end_offset: int64 = 0
    last_fetch_timestamp: Annotated[int64, V("1+")] = -1
    last_caught_up_timestamp: Annotated[int64, V("1+")] = -1


class ResponsePartitionData(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[str | None, V("2+")] = ""
    leader_id: int32 = 0
    leader_epoch: int32 = 0
    high_watermark: int64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class ResponseTopicData(Message):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = []


class Listener(Message):
    name: Annotated[str, V("2+")] = ""
    host: Annotated[str, V("2+")] = ""
    port: Annotated[uint16, V("2+")] = 0


class Node(Message):
    node_id: Annotated[int32, V("2+")] = 0
    listeners: Annotated[list[Listener], V("2+")] = []


class DescribeQuorumResponse(Message):
    error_code: int16 = 0
    error_message: Annotated[str | None, V("2+")] = ""
    topics: list[ResponseTopicData] = []
    nodes: Annotated[list[Node], V("2+")] = []
