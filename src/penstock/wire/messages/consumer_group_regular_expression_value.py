"""ConsumerGroupRegularExpressionValue; written by codegen."""

from penstock.wire.schema import Message, int64


class ConsumerGroupRegularExpressionValue(Message):
    topics: list[str] = []
    version: int64 = 0
    timestamp: int64 = 0
