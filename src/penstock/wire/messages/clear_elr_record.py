"""ClearElrRecord; written by codegen."""

from penstock.wire.schema import Message


class ClearElrRecord(Message):
    topic_name: str = ""
