"""ConsumerGroupRegularExpressionKey; written by codegen."""

from penstock.wire.schema import Message


class ConsumerGroupRegularExpressionKey(Message):
    group_id: str = ""
    regular_expression: str = ""
