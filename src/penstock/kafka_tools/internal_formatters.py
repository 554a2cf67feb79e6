"""Formatters for internal topics: group offsets, group metadata, transactions."""

from collections.abc import Callable
from struct import Struct
from typing import Any

from penstock.client.consume import ConsumedRecord
from penstock.errors import ProtocolError
from penstock.types import Buffer
from penstock.wire.codec import decode
from penstock.wire.json import json_fields, json_text
from penstock.wire.messages.group_metadata_key import GroupMetadataKey
from penstock.wire.messages.group_metadata_value import GroupMetadataValue
from penstock.wire.messages.offset_commit_key import OffsetCommitKey
from penstock.wire.messages.offset_commit_value import OffsetCommitValue
from penstock.wire.messages.transaction_log_key import TransactionLogKey
from penstock.wire.messages.transaction_log_value import TransactionLogValue
from penstock.wire.schema import Message

_NUMBER = Struct(">h")
Kinds = dict[int, tuple[type[Message], type[Message]]]
OFFSETS: Kinds = dict.fromkeys((0, 1), (OffsetCommitKey, OffsetCommitValue))
GROUPS: Kinds = {2: (GroupMetadataKey, GroupMetadataValue)}
TRANSACTIONS: Kinds = {0: (TransactionLogKey, TransactionLogValue)}
NO_METADATA = "NO_METADATA"


def _parts(data: Buffer) -> tuple[int, bytes]:
    raw = bytes(data)
    if len(raw) < _NUMBER.size:
        raise ProtocolError("it has no type and version")
    return _NUMBER.unpack_from(raw)[0], raw[_NUMBER.size :]


def json_formatter(kinds: Kinds) -> Callable[[ConsumedRecord], bytes | None]:
    """Prints `{"key":{"type":1,"data":{…}},"value":{"version":4,"data":{…}}}`, as in Kafka 4."""

    def formatted(consumed: ConsumedRecord) -> bytes | None:
        record = consumed.record
        if record.key is None:
            return None
        try:
            kind, key = _parts(record.key)
            if kind not in kinds:
                return None
            key_type, value_type = kinds[kind]
            row: dict[str, Any] = {
                "key": {"type": kind, "data": json_fields(decode(key_type, 0, key), 0)},
                "value": None,
            }
            if record.value is not None:
                version, value = _parts(record.value)
                row["value"] = {
                    "version": version,
                    "data": json_fields(decode(value_type, version, value), version),
                }
        except (ProtocolError, KeyError):
            return None
        return json_text(row).encode() + b"\n"

    return formatted


def old_offsets_formatter(retention_ms: int) -> Callable[[ConsumedRecord], bytes | None]:
    """Prints `[group,topic,3]::[OffsetMetadata[20,NO_METADATA],CommitTime …,ExpirationTime …]`.

    A commit without an expiration time expires `retention_ms` after its commit time.
    """

    def formatted(consumed: ConsumedRecord) -> bytes | None:
        record = consumed.record
        if record.key is None:
            return None
        try:
            kind, data = _parts(record.key)
            if kind not in OFFSETS:
                return None
            key = decode(OffsetCommitKey, 0, data)
            name = f"[{key.group},{key.topic},{key.partition}]"
            if record.value is None:
                return f"{name}::NULL\n".encode()
            version, data = _parts(record.value)
            value = decode(OffsetCommitValue, version, data)
        except (ProtocolError, KeyError):
            return None
        expires = value.expire_timestamp
        if expires < 0:
            expires = value.commit_timestamp + retention_ms
        return (
            f"{name}::[OffsetMetadata[{value.offset},{value.metadata or NO_METADATA}],"
            f"CommitTime {value.commit_timestamp},ExpirationTime {expires}]\n"
        ).encode()

    return formatted
