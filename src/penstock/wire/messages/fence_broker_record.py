"""FenceBrokerRecord; written by codegen."""

from penstock.wire.schema import Message, int32, int64


class FenceBrokerRecord(Message):
    id: int32 = 0
    epoch: int64 = 0
