"""OffsetFetch (key 9); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32, int64


class OffsetFetchRequestTopic(Message):
    name: Annotated[str, V("0-7")] = ""
    partition_indexes: Annotated[list[int32], V("0-7")] = []


class OffsetFetchRequestTopics(Message):
    name: Annotated[str, V("8-9")] = ""
    topic_id: Annotated[Uuid, V("10+")] = NO_UUID
    partition_indexes: Annotated[list[int32], V("8+")] = []


class OffsetFetchRequestGroup(Message):
    group_id: Annotated[str, V("8+")] = ""
    member_id: Annotated[str | None, V("9+")] = None
    member_epoch: Annotated[int32, V("9+")] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, V("8+")] = []


class OffsetFetchRequest(Message):
    group_id: Annotated[str, V("0-7")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, V("0-7", nullable="2-7")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], V("8+")] = []
    require_stable: Annotated[bool, V("7+")] = False


class OffsetFetchResponsePartition(Message):
    partition_index: Annotated[int32, V("0-7")] = 0
    committed_offset: Annotated[int64, V("0-7")] = 0
    committed_leader_epoch: Annotated[int32, V("5-7")] = -1
    metadata: Annotated[str | None, V("0-7")] = ""
    error_code: Annotated[int16, V("0-7")] = 0


class OffsetFetchResponseTopic(Message):
    name: Annotated[str, V("0-7")] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], V("0-7")] = []


class OffsetFetchResponsePartitions(Message):
    partition_index: Annotated[int32, V("8+")] = 0
    committed_offset: Annotated[int64, V("8+")] = 0
    committed_leader_epoch: Annotated[int32, V("8+")] = -1
    metadata: Annotated[str | None, V("8+")] = ""
    error_code: Annotated[int16, V("8+")] = 0


class OffsetFetchResponseTopics(Message):
    name: Annotated[str, V("8-9")] = ""
    topic_id: Annotated[Uuid, V("10+")] = NO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], V("8+")] = []


class OffsetFetchResponseGroup(Message):
    group_id: Annotated[str, V("8+")] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], V("8+")] = []
    error_code: Annotated[int16, V("8+")] = 0


class OffsetFetchResponse(Message):
    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], V("0-7")] = []
    error_code: Annotated[int16, V("2-7")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], V("8+")] = []
