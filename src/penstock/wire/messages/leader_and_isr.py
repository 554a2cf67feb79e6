"""LeaderAndIsr (key 4); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int16, int32, int64


class LeaderAndIsrPartitionState(Message):
    topic_name: Annotated[str, V("0-1")] = ""
    partition_index: int32 = 0
    controller_epoch: int32 = 0
    leader: int32 = 0
    leader_epoch: int32 = 0
    isr: list[int32] = []
    partition_epoch: int32 = 0
    replicas: list[int32] = []
    adding_replicas: Annotated[list[int32], V("3+")] = []
    removing_replicas: Annotated[list[int32], V("3+")] = []
    is_new: Annotated[bool, V("1+")] = False
    leader_recovery_state: Annotated[int8, V("6+")] = 0


class LeaderAndIsrTopicState(Message):
    topic_name: Annotated[str, V("2+")] = ""
    topic_id: Annotated[Uuid, V("5+")] = NO_UUID
    partition_states: Annotated[list[LeaderAndIsrPartitionState], V("2+")] = []


class LeaderAndIsrLiveLeader(Message):
    broker_id: int32 = 0
    host_name: str = ""
    port: int32 = 0


class LeaderAndIsrRequest(Message):
    controller_id: int32 = 0
    is_k_raft_controller: Annotated[bool, V("7+")] = False
    controller_epoch: int32 = 0
    broker_epoch: Annotated[int64, V("2+")] = -1
    type: Annotated[int8, V("5+")] = 0
    ungrouped_partition_states: Annotated[list[LeaderAndIsrPartitionState], V("0-1")] = []
    topic_states: Annotated[list[LeaderAndIsrTopicState], V("2+")] = []
    live_leaders: list[LeaderAndIsrLiveLeader] = []


class LeaderAndIsrPartitionError(Message):
    topic_name: Annotated[str, V("0-4")] = ""
    partition_index: int32 = 0
    error_code: int16 = 0


class LeaderAndIsrTopicError(Message):
    topic_id: Annotated[Uuid, V("5+")] = NO_UUID
    partition_errors: Annotated[list[LeaderAndIsrPartitionError], V("5+")] = []


class LeaderAndIsrResponse(Message):
    error_code: int16 = 0
    partition_errors: Annotated[list[LeaderAndIsrPartitionError], V("0-4")] = []
    topics: Annotated[list[LeaderAndIsrTopicError], V("5+")] = []
