"""Records of the brokers' own topics as JSON, as `kafka-dump-log` of Kafka 4 prints them."""

from base64 import b64encode
from collections.abc import Mapping
from struct import Struct, error
from typing import Any

import msgspec

from penstock.coordinator.group.consumer.records import KINDS
from penstock.errors import ProtocolError
from penstock.log.inspection.kraft import metadata_message
from penstock.record.record import Record
from penstock.types import uuid_text
from penstock.wire.codec import decode
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.group_metadata_key import GroupMetadataKey
from penstock.wire.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from penstock.wire.messages.offset_commit_key import OffsetCommitKey
from penstock.wire.messages.offset_commit_value import OffsetCommitValue
from penstock.wire.messages.transaction_log_key import TransactionLogKey
from penstock.wire.messages.transaction_log_value import TransactionLogValue
from penstock.wire.schema import Array, Message, fields
from penstock.wire.schema import Kind as WireKind

DELETED = "<DELETE>"
_NUMBER = Struct(">h")

Kinds = Mapping[int, tuple[type[Message], type[Message]]]

GROUP_KINDS: Kinds = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    **KINDS,
}
TRANSACTION_KINDS: Kinds = {0: (TransactionLogKey, TransactionLogValue)}


def group_record(record: Record) -> dict[str, str]:
    """A record of `__consumer_offsets`."""
    return _shown(record, GROUP_KINDS)


def transaction_record(record: Record) -> dict[str, str]:
    """A record of `__transaction_state`."""
    return _shown(record, TRANSACTION_KINDS)


def metadata_record(record: Record) -> dict[str, str]:
    """A record of KRaft's log: what a topic or its settings are, else its type and version."""
    found = metadata_message(record)
    if found is None:
        return {"payload": f"Error at {record.offset}, skipping. It is no metadata record."}
    shown: dict[str, Any] = {"type": found.type, "version": found.version}
    if found.message is not None:
        shown["data"] = _fields(found.message, 0)
    return {"payload": _json(shown)}


def _shown(record: Record, kinds: Kinds) -> dict[str, str]:
    try:
        number, key = _split(record.key or b"")
        if number not in kinds:
            return {"key": f"Unknown record type {number} at offset {record.offset}, skipping."}
        key_type, value_type = kinds[number]
        where = {"type": str(number), "data": _fields(decode(key_type, 0, key), 0)}
        if record.value is None:
            return {"key": _json(where), "payload": DELETED}
        version, value = _split(record.value)
        data = _fields(decode(value_type, version, value), version)
    except (ProtocolError, KeyError) as problem:
        return {"key": f"Error at offset {record.offset}, skipping. {problem}"}
    return {"key": _json(where), "payload": _json({"version": str(version), "data": data})}


def _split(data: bytes) -> tuple[int, bytes]:
    try:
        return _NUMBER.unpack_from(data)[0], data[_NUMBER.size :]
    except error:
        raise ProtocolError("it does not tell its type and version") from None


def _fields(message: Message, version: int) -> dict[str, Any]:
    """What the version carries, by the names of Kafka's schemas; tags only where they are set."""
    shown = {}
    for field in fields(type(message), version):
        value = getattr(message, field.name)
        if field.tag is None or value != field.default:
            shown[_camel(field.name)] = _value(value, field.kind, version)
    if isinstance(message, MemberMetadata):
        shown["subscription"] = _embedded(ConsumerProtocolSubscription, message.subscription)
        shown["assignment"] = _embedded(ConsumerProtocolAssignment, message.assignment)
    return shown


def _value(value: Any, kind: WireKind, version: int) -> Any:
    if isinstance(value, Message):
        return _fields(value, version)
    if isinstance(kind, Array) and value is not None:
        return [_value(each, kind.item, version) for each in value]
    if kind == "uuid":
        return uuid_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    return value


def _embedded(kind: type[Message], data: bytes) -> Any:
    """What a consumer told its group, or the bytes if they are no consumer's."""
    try:
        version, rest = _split(data)
        return _fields(decode(kind, version, rest), version)
    except (ProtocolError, KeyError):
        return b64encode(data).decode()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _json(shown: dict[str, Any]) -> str:
    return msgspec.json.encode(shown).decode()
