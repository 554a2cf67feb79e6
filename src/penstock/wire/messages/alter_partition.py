"""AlterPartition (key 56); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int16, int32, int64


class BrokerState(Message):
    broker_id: Annotated[int32, V("3+")] = 0
    broker_epoch: Annotated[int64, V("3+")] = -1


class PartitionData(Message):
    partition_index: int32 = 0
    leader_epoch: int32 = 0
    new_isr: Annotated[list[int32], V("0-2")] = []
    new_isr_with_epochs: Annotated[list[BrokerState], V("3+")] = []
    leader_recovery_state: Annotated[int8, V("1+")] = 0
    partition_epoch: int32 = 0


class TopicData(Message):
    topic_name: Annotated[str, V("0-1")] = ""
    topic_id: Annotated[Uuid, V("2+")] = NO_UUID
    partitions: list[PartitionData] = []


class AlterPartitionRequest(Message):
    broker_id: int32 = 0
    broker_epoch: int64 = -1
    topics: list[TopicData] = []


class ResponsePartitionData(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    leader_id: int32 = 0
    leader_epoch: int32 = 0
    isr: list[int32] = []
    leader_recovery_state: Annotated[int8, V("1+")] = 0
    partition_epoch: int32 = 0


class ResponseTopicData(Message):
    topic_name: Annotated[str, V("0-1")] = ""
    topic_id: Annotated[Uuid, V("2+")] = NO_UUID
    partitions: list[ResponsePartitionData] = []


class AlterPartitionResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    topics: list[ResponseTopicData] = []
