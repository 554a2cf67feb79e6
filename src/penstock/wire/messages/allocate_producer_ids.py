"""AllocateProducerIds (key 67); written by codegen."""

from penstock.wire.schema import Message, int16, int32, int64


class AllocateProducerIdsRequest(Message):
    broker_id: int32 = 0
    broker_epoch: int64 = -1


class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id_start: int64 = 0
    producer_id_len: int32 = 0
