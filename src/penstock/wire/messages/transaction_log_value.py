"""TransactionLogValue; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32, int64


class PartitionsSchema(Message):
    topic: str = ""
    partition_ids: list[int32] = []


class TransactionLogValue(Message):
    producer_id: int64 = 0
    previous_producer_id: Annotated[int64, V("1+", tag=0)] = -1
    next_producer_id: Annotated[int64, V("1+", tag=1)] = -1
    producer_epoch: int16 = 0
    next_producer_epoch: Annotated[int16, V("1+", tag=3)] = -1
    transaction_timeout_ms: int32 = 0
    transaction_status: int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: int64 = 0
    transaction_start_timestamp_ms: int64 = 0
    client_transaction_version: Annotated[int16, V("1+", tag=2)] = 0
