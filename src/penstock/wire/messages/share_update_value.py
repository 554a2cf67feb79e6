"""ShareUpdateValue; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32, int64


class StateBatch(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_state: int8 = 0
    delivery_count: int16 = 0


class ShareUpdateValue(Message):
    snapshot_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("0+", tag=0)] = -1
    state_batches: list[StateBatch] = []
