"""ProducerIdsRecord; written by codegen."""

from penstock.wire.schema import Message, int32, int64


class ProducerIdsRecord(Message):
    broker_id: int32 = 0
    broker_epoch: int64 = -1
    next_producer_id: int64 = 0
