"""DescribeClientQuotas (key 48); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class ComponentData(Message):
    entity_type: str = ""
    match_type: int8 = 0
    match: str | None = ""


class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = []
    strict: bool = False


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""


class ValueData(Message):
    key: str = ""
    value: float = 0.0


class EntryData(Message):
    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []
