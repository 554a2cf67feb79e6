"""ShareFetch (key 78); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, Records, V, int8, int16, int32, int64


class AcknowledgementBatch(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    acknowledge_types: list[int8] = []


class FetchPartition(Message):
    partition_index: int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class FetchTopic(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[int32] = []


class ShareFetchRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int32 = 0
    max_wait_ms: int32 = 0
    min_bytes: int32 = 0
    max_bytes: int32 = 2147483647
    max_records: int32 = 0
    batch_size: int32 = 0
    share_acquire_mode: Annotated[int8, V("2+")] = 0
    is_renew_ack: Annotated[bool, V("2+")] = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


class LeaderIdAndEpoch(Message):
    leader_id: int32 = 0
    leader_epoch: int32 = 0


class AcquiredRecords(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_count: int16 = 0


class PartitionData(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acknowledge_error_code: int16 = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: Records = b""
    acquired_records: list[AcquiredRecords] = []


class ShareFetchableTopicResponse(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Message):
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None


class ShareFetchResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int32 = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
