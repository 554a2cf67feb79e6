"""Produce (key 0); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, Records, V, int16, int32, int64


class PartitionProduceData(Message):
    index: int32 = 0
    records: Records | None = None


class TopicProduceData(Message):
    name: Annotated[str, V("0-12")] = ""
    topic_id: Annotated[Uuid, V("13+")] = NO_UUID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Message):
    transactional_id: str | None = None
    acks: int16 = 0
    timeout_ms: int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Message):
    batch_index: Annotated[int32, V("8+")] = 0
    batch_index_error_message: Annotated[str | None, V("8+")] = None


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int32, V("10+")] = -1
    leader_epoch: Annotated[int32, V("10+")] = -1


class PartitionProduceResponse(Message):
    index: int32 = 0
    error_code: int16 = 0
    base_offset: int64 = 0
    log_append_time_ms: int64 = -1
    log_start_offset: Annotated[int64, V("5+")] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], V("8+")] = []
    error_message: Annotated[str | None, V("8+")] = None
    current_leader: Annotated[LeaderIdAndEpoch, V("10+", tag=0)] = LeaderIdAndEpoch()


class TopicProduceResponse(Message):
    name: Annotated[str, V("0-12")] = ""
    topic_id: Annotated[Uuid, V("13+")] = NO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class NodeEndpoint(Message):
    node_id: Annotated[int32, V("10+")] = 0
    host: Annotated[str, V("10+")] = ""
    port: Annotated[int32, V("10+")] = 0
    rack: Annotated[str | None, V("10+")] = None


class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: int32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], V("10+", tag=0)] = []
