"""StreamsGroupMemberMetadataValue; written by codegen."""

from penstock.wire.schema import Message, int32, uint16


class Endpoint(Message):
    host: str = ""
    port: uint16 = 0


class KeyValue(Message):
    key: str = ""
    value: str = ""


class StreamsGroupMemberMetadataValue(Message):
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int32 = -1
    topology_epoch: int32 = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
