"""ClientQuotaRecord; written by codegen."""

from penstock.wire.schema import Message


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""


class ClientQuotaRecord(Message):
    entity: list[EntityData] = []
    key: str = ""
    value: float = 0.0
    remove: bool = False
