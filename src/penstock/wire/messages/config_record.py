"""ConfigRecord; written by codegen."""

from penstock.wire.schema import Message, int8


class ConfigRecord(Message):
    resource_type: int8 = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = ""
