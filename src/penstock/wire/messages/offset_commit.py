"""OffsetCommit (key 8); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32, int64


class OffsetCommitRequestPartition(Message):
    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("6+")] = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(Message):
    name: Annotated[str, V("0-9")] = ""
    topic_id: Annotated[Uuid, V("10+")] = NO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Message):
    group_id: str = ""
    generation_id_or_member_epoch: int32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, V("7+")] = None
    retention_time_ms: Annotated[int64, V("0-4")] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    partition_index: int32 = 0
    error_code: int16 = 0


class OffsetCommitResponseTopic(Message):
    name: Annotated[str, V("0-9")] = ""
    topic_id: Annotated[Uuid, V("10+")] = NO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: list[OffsetCommitResponseTopic] = []
