"""ShareAcknowledge (key 79); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int16, int32, int64


class AcknowledgementBatch(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    acknowledge_types: list[int8] = []


class AcknowledgePartition(Message):
    partition_index: int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class AcknowledgeTopic(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[AcknowledgePartition] = []


class ShareAcknowledgeRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int32 = 0
    is_renew_ack: Annotated[bool, V("2+")] = False
    topics: list[AcknowledgeTopic] = []


class LeaderIdAndEpoch(Message):
    leader_id: int32 = 0
    leader_epoch: int32 = 0


class PartitionData(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class ShareAcknowledgeTopicResponse(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Message):
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None


class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: Annotated[int32, V("2+")] = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
