"""Records of internal topics as JSON, as Kafka 4's `kafka-dump-log` prints them."""

from base64 import b64encode
from collections.abc import Mapping
from struct import Struct, error
from typing import Any

from penstock.coordinator.group.consumer.records import KINDS
from penstock.errors import ProtocolError
from penstock.log.inspection.kraft import metadata_message
from penstock.record.record import Record
from penstock.wire.codec import decode
from penstock.wire.json import json_fields, json_text
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.group_metadata_key import GroupMetadataKey
from penstock.wire.messages.group_metadata_value import GroupMetadataValue
from penstock.wire.messages.offset_commit_key import OffsetCommitKey
from penstock.wire.messages.offset_commit_value import OffsetCommitValue
from penstock.wire.messages.share_snapshot_key import ShareSnapshotKey
from penstock.wire.messages.share_snapshot_value import ShareSnapshotValue
from penstock.wire.messages.share_update_key import ShareUpdateKey
from penstock.wire.messages.share_update_value import ShareUpdateValue
from penstock.wire.messages.transaction_log_key import TransactionLogKey
from penstock.wire.messages.transaction_log_value import TransactionLogValue
from penstock.wire.schema import Message

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
SHARE_KINDS: Kinds = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}


def group_record(record: Record) -> dict[str, str]:
    """A record of `__consumer_offsets`."""
    return _shown(record, GROUP_KINDS)


def transaction_record(record: Record) -> dict[str, str]:
    """A record of `__transaction_state`."""
    return _shown(record, TRANSACTION_KINDS)


def share_record(record: Record) -> dict[str, str]:
    """A record of `__share_group_state`."""
    return _shown(record, SHARE_KINDS)


def metadata_record(record: Record) -> dict[str, str]:
    """A record of KRaft's log."""
    try:
        kind, version, message = metadata_message(record)
    except ProtocolError as problem:
        return {"payload": f"Error at {record.offset}, skipping. {problem}"}
    data = json_fields(message, version)
    return {"payload": json_text({"type": kind, "version": version, "data": data})}


def _shown(record: Record, kinds: Kinds) -> dict[str, str]:
    try:
        number, key = _split(record.key or b"")
        if number not in kinds:
            return {"key": f"Unknown record type {number} at offset {record.offset}, skipping."}
        key_type, value_type = kinds[number]
        key_row = {"type": str(number), "data": json_fields(decode(key_type, 0, key), 0)}
        if record.value is None:
            return {"key": json_text(key_row), "payload": DELETED}
        version, value = _split(record.value)
        message = decode(value_type, version, value)
        data = json_fields(message, version)
        if isinstance(message, GroupMetadataValue):
            data = _with_protocol(data, message)
    except (ProtocolError, KeyError) as problem:
        return {"key": f"Error at offset {record.offset}, skipping. {problem}"}
    return {
        "key": json_text(key_row),
        "payload": json_text({"version": str(version), "data": data}),
    }


def _split(data: bytes) -> tuple[int, bytes]:
    try:
        return _NUMBER.unpack_from(data)[0], data[_NUMBER.size :]
    except error:
        raise ProtocolError("it has no type and version") from None


def _with_protocol(data: dict[str, Any], group: GroupMetadataValue) -> dict[str, Any]:
    """The group's value with decoded subscriptions and assignments, instead of their bytes."""
    for shown, member in zip(data["members"], group.members, strict=True):
        shown["subscription"] = _embedded(ConsumerProtocolSubscription, member.subscription)
        shown["assignment"] = _embedded(ConsumerProtocolAssignment, member.assignment)
    return data


def _embedded(kind: type[Message], data: bytes) -> Any:
    """Decoded data of the consumer protocol; base64 for other protocols."""
    try:
        version, rest = _split(data)
        return json_fields(decode(kind, version, rest), version)
    except (ProtocolError, KeyError):
        return b64encode(data).decode()
