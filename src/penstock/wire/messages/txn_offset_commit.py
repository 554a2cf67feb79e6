"""TxnOffsetCommit (key 28); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32, int64


class TxnOffsetCommitRequestPartition(Message):
    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("2+")] = -1
    committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(Message):
    name: Annotated[str, V("0-5")] = ""
    topic_id: Annotated[Uuid, V("6+")] = NO_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Message):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    generation_id_or_member_epoch: Annotated[int32, V("3+")] = -1
    member_id: Annotated[str, V("3+")] = ""
    group_instance_id: Annotated[str | None, V("3+")] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Message):
    partition_index: int32 = 0
    error_code: int16 = 0


class TxnOffsetCommitResponseTopic(Message):
    name: Annotated[str, V("0-5")] = ""
    topic_id: Annotated[Uuid, V("6+")] = NO_UUID
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
