"""DeleteRecords (key 21); written by codegen."""

from penstock.wire.schema import Message, int16, int32, int64


class DeleteRecordsPartition(Message):
    partition_index: int32 = 0
    offset: int64 = 0


class DeleteRecordsTopic(Message):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = []
    timeout_ms: int32 = 0


class DeleteRecordsPartitionResult(Message):
    partition_index: int32 = 0
    low_watermark: int64 = 0
    error_code: int16 = 0


class DeleteRecordsTopicResult(Message):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
