"""PartitionRecord; written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int32


class PartitionRecord(Message):
    partition_id: int32 = -1
    topic_id: Uuid = NO_UUID
    replicas: list[int32] = []
    isr: list[int32] = []
    removing_replicas: list[int32] = []
    adding_replicas: list[int32] = []
    leader: int32 = -1
    leader_recovery_state: Annotated[int8, V("0+", tag=0)] = 0
    leader_epoch: int32 = -1
    partition_epoch: int32 = -1
    directories: Annotated[list[Uuid], V("1+")] = []
    eligible_leader_replicas: Annotated[list[int32] | None, V("2+", tag=1)] = None
    last_known_elr: Annotated[list[int32] | None, V("2+", tag=2)] = None
