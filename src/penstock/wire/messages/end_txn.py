"""EndTxn (key 26); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class EndTxnRequest(Message):
    transactional_id: str = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    committed: bool = False


class EndTxnResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id: Annotated[int64, V("5+")] = -1
    producer_epoch: Annotated[int16, V("5+")] = -1
