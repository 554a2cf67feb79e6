"""PartitionChangeRecord; written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int32


class PartitionChangeRecord(Message):
    partition_id: int32 = -1
    topic_id: Uuid = NO_UUID
    isr: Annotated[list[int32] | None, V("0+", tag=0)] = None
    leader: Annotated[int32, V("0+", tag=1)] = -2
    replicas: Annotated[list[int32] | None, V("0+", tag=2)] = None
    removing_replicas: Annotated[list[int32] | None, V("0+", tag=3)] = None
    adding_replicas: Annotated[list[int32] | None, V("0+", tag=4)] = None
    leader_recovery_state: Annotated[int8, V("0+", tag=5)] = -1
    directories: Annotated[list[Uuid] | None, V("1+", tag=8)] = None
    eligible_leader_replicas: Annotated[list[int32] | None, V("2+", tag=6)] = None
    last_known_elr: Annotated[list[int32] | None, V("2+", tag=7)] = None
