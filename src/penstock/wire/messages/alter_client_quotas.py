"""AlterClientQuotas (key 49); written by codegen."""

from penstock.wire.schema import Message, int16, int32


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""


class OpData(Message):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class EntryData(Message):
    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Message):
    entries: list[EntryData] = []
    validate_only: bool = False


class ResponseEntryData(Message):
    error_code: int16 = 0
    error_message: str | None = ""
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Message):
    throttle_time_ms: int32 = 0
    entries: list[ResponseEntryData] = []
