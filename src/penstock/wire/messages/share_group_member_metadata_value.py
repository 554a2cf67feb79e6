"""ShareGroupMemberMetadataValue; written by codegen."""

from penstock.wire.schema import Message


class ShareGroupMemberMetadataValue(Message):
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
