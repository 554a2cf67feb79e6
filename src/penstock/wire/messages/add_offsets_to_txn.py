"""AddOffsetsToTxn (key 25); written by codegen."""

from penstock.wire.schema import Message, int16, int32, int64


class AddOffsetsToTxnRequest(Message):
    transactional_id: str = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
