"""DescribeProducers (key 61); written by codegen."""

from penstock.wire.schema import Message, int16, int32, int64


class TopicRequest(Message):
    name: str = ""
    partition_indexes: list[int32] = []


class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = []


class ProducerState(Message):
    producer_id: int64 = 0
    producer_epoch: int32 = 0
    last_sequence: int32 = -1
    last_timestamp: int64 = -1
    coordinator_epoch: int32 = 0
    current_txn_start_offset: int64 = -1


class PartitionResponse(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = []


class TopicResponse(Message):
    name: str = ""
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[TopicResponse] = []
