"""Fetch (key 1); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, Records, V, int8, int16, int32, int64


class ReplicaState(Message):
    replica_id: Annotated[int32, V("15+")] = -1
    replica_epoch: Annotated[int64, V("15+")] = -1


class FetchPartition(Message):
    partition: int32 = 0
    current_leader_epoch: Annotated[int32, V("9+")] = -1
    fetch_offset: int64 = 0
    last_fetched_epoch: Annotated[int32, V("12+")] = -1
    log_start_offset: Annotated[int64, V("5+")] = -1
    partition_max_bytes: int32 = 0
    replica_directory_id: Annotated[Uuid, V("17+", tag=0)] = NO_UUID
    high_watermark: Annotated[int64, V("18+", tag=1)] = 9223372036854775807


class FetchTopic(Message):
    topic: Annotated[str, V("0-12")] = ""
    topic_id: Annotated[Uuid, V("13+")] = NO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Message):
    topic: Annotated[str, V("7-12")] = ""
    topic_id: Annotated[Uuid, V("13+")] = NO_UUID
    partitions: Annotated[list[int32], V("7+")] = []


class FetchRequest(Message):
    cluster_id: Annotated[str | None, V("12+", tag=0)] = None
    replica_id: Annotated[int32, V("0-14")] = -1
    replica_state: Annotated[ReplicaState, V("15+", tag=1)] = ReplicaState()
    max_wait_ms: int32 = 0
    min_bytes: int32 = 0
    max_bytes: int32 = 2147483647
    isolation_level: int8 = 0
    session_id: Annotated[int32, V("7+")] = 0
    session_epoch: Annotated[int32, V("7+")] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], V("7+")] = []
    rack_id: Annotated[str, V("11+")] = ""


class EpochEndOffset(Message):
    epoch: Annotated[int32, V("12+")] = -1
    end_offset: Annotated[int64, V("12+")] = -1


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int32, V("12+")] = -1
    leader_epoch: Annotated[int32, V("12+")] = -1


class SnapshotId(Message):
    end_offset: int64 = -1
    epoch: int32 = -1


class AbortedTransaction(Message):
    producer_id: int64 = 0
    first_offset: int64 = 0


class PartitionData(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    high_watermark: int64 = 0
    last_stable_offset: int64 = -1
    log_start_offset: Annotated[int64, V("5+")] = -1
    diverging_epoch: Annotated[EpochEndOffset, V("12+", tag=0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, V("12+", tag=1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, V("12+", tag=2)] = SnapshotId()
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: Annotated[int32, V("11+")] = -1
    records: Records | None = None


class FetchableTopicResponse(Message):
    topic: Annotated[str, V("0-12")] = ""
    topic_id: Annotated[Uuid, V("13+")] = NO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Message):
    node_id: Annotated[int32, V("16+")] = 0
    host: Annotated[str, V("16+")] = ""
    port: Annotated[int32, V("16+")] = 0
    rack: Annotated[str | None, V("16+")] = None


class FetchResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("7+")] = 0
    session_id: Annotated[int32, V("7+")] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], V("16+", tag=0)] = []
