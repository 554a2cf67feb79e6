"""ElectLeaders (key 43); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32


class TopicPartitions(Message):
    topic: str = ""
    partitions: list[int32] = []


class ElectLeadersRequest(Message):
    election_type: Annotated[int8, V("1+")] = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: int32 = 60000


class PartitionResult(Message):
    partition_id: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""


class ReplicaElectionResult(Message):
    topic: str = ""
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("1+")] = 0
    replica_election_results: list[ReplicaElectionResult] = []
