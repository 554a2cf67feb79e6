"""StopReplica (key 5); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class StopReplicaPartitionV0(Message):
    topic_name: Annotated[str, V("0")] = ""
    partition_index: Annotated[int32, V("0")] = 0


class StopReplicaTopicV1(Message):
    name: Annotated[str, V("1-2")] = ""
    partition_indexes: Annotated[list[int32], V("1-2")] = []


class StopReplicaPartitionState(Message):
    partition_index: Annotated[int32, V("3+")] = 0
    leader_epoch: Annotated[int32, V("3+")] = -1
    delete_partition: Annotated[bool, V("3+")] = False


class StopReplicaTopicState(Message):
    topic_name: Annotated[str, V("3+")] = ""
    partition_states: Annotated[list[StopReplicaPartitionState], V("3+")] = []


class StopReplicaRequest(Message):
    controller_id: int32 = 0
    is_k_raft_controller: Annotated[bool, V("4+")] = False
    controller_epoch: int32 = 0
    broker_epoch: Annotated[int64, V("1+")] = -1
    delete_partitions: Annotated[bool, V("0-2")] = False
    ungrouped_partitions: Annotated[list[StopReplicaPartitionV0], V("0")] = []
    topics: Annotated[list[StopReplicaTopicV1], V("1-2")] = []
    topic_states: Annotated[list[StopReplicaTopicState], V("3+")] = []


class StopReplicaPartitionError(Message):
    topic_name: str = ""
    partition_index: int32 = 0
    error_code: int16 = 0


class StopReplicaResponse(Message):
    error_code: int16 = 0
    partition_errors: list[StopReplicaPartitionError] = []
