"""ControlledShutdown (key 7); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class ControlledShutdownRequest(Message):
    broker_id: int32 = 0
    broker_epoch: Annotated[int64, V("2+")] = -1


class RemainingPartition(Message):
    topic_name: str = ""
    partition_index: int32 = 0


class ControlledShutdownResponse(Message):
    error_code: int16 = 0
    remaining_partitions: list[RemainingPartition] = []
