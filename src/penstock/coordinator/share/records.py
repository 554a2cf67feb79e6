"""The records of `__share_group_state`, in Kafka's format.

A snapshot holds the whole state of a share-partition. An update changes the snapshot with the same
epoch. A snapshot without a value: the state is deleted.
"""

from struct import Struct

import msgspec

from penstock.coordinator.share.state import SharePartitionKey, StateBatch
from penstock.coordinator.storage import RawRecord
from penstock.errors import ProtocolError
from penstock.wire.codec import decode, encode
from penstock.wire.messages.share_snapshot_key import ShareSnapshotKey
from penstock.wire.messages.share_snapshot_value import ShareSnapshotValue
from penstock.wire.messages.share_snapshot_value import StateBatch as SnapshotBatch
from penstock.wire.messages.share_update_key import ShareUpdateKey
from penstock.wire.messages.share_update_value import ShareUpdateValue
from penstock.wire.messages.share_update_value import StateBatch as UpdateBatch

_NUMBER = Struct(">h")
_SNAPSHOT, _UPDATE, _VERSION = 0, 1, 0


class ShareRecord(msgspec.Struct, frozen=True):
    """The new state of a share-partition, or a change of it; None: it is deleted."""

    key: SharePartitionKey
    value: ShareSnapshotValue | ShareUpdateValue | None


class ShareFormat:
    """A key starts with the record type, a value with the version of its message."""

    def encode(self, record: ShareRecord) -> RawRecord:
        value = record.value
        if isinstance(value, ShareUpdateValue):
            key = encode(ShareUpdateKey(*record.key), 0, _NUMBER.pack(_UPDATE))
        else:
            key = encode(ShareSnapshotKey(*record.key), 0, _NUMBER.pack(_SNAPSHOT))
        return RawRecord(
            key, None if value is None else encode(value, _VERSION, _NUMBER.pack(_VERSION))
        )

    def decode(self, raw: RawRecord) -> ShareRecord | None:
        kind, key = _number(raw.key), raw.key[_NUMBER.size :]
        if kind not in {_SNAPSHOT, _UPDATE}:
            return None
        found = decode(ShareSnapshotKey, 0, key)  # both keys have the same fields
        where = SharePartitionKey(found.group_id, found.topic_id, found.partition)
        if raw.value is None:
            return ShareRecord(where, None)
        version, value = _number(raw.value), raw.value[_NUMBER.size :]
        if version != _VERSION:
            raise ProtocolError(f"a share state record of version {version} is newer than this")
        if kind == _SNAPSHOT:
            return ShareRecord(where, decode(ShareSnapshotValue, version, value))
        return ShareRecord(where, decode(ShareUpdateValue, version, value))


def snapshot_batches(batches: tuple[StateBatch, ...]) -> list[SnapshotBatch]:
    return [SnapshotBatch(*each) for each in batches]


def update_batches(batches: tuple[StateBatch, ...]) -> list[UpdateBatch]:
    return [UpdateBatch(*each) for each in batches]


def read_batches(batches: list[SnapshotBatch] | list[UpdateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    )


def _number(data: bytes) -> int:
    if len(data) < _NUMBER.size:
        raise ProtocolError("a share state record is too short for its type or version")
    number: int = _NUMBER.unpack_from(data)[0]
    return number
