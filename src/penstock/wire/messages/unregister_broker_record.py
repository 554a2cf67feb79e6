"""UnregisterBrokerRecord; written by codegen."""

from penstock.wire.schema import Message, int32, int64


class UnregisterBrokerRecord(Message):
    broker_id: int32 = 0
    broker_epoch: int64 = 0
