"""Transaction markers: the control records that end a transaction in a partition."""

from struct import Struct

import msgspec

from penstock.record.build import build_batch
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_VERSION = 0
_ABORT = 0
_COMMIT = 1


class EndTransactionMarker(msgspec.Struct, frozen=True):
    """How a producer's transaction ended, as decided by the coordinator of that epoch."""

    committed: bool
    coordinator_epoch: int


def build_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    key = _KEY.pack(_VERSION, _COMMIT if committed else _ABORT)
    value = _VALUE.pack(_VERSION, coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp, key, value, [])],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(record: Record) -> EndTransactionMarker | None:
    """The marker in a control record; None for other kinds of control records.

    Fields that later versions append are ignored.
    """
    if record.key is None or len(record.key) < _KEY.size:
        raise InvalidRecord("a control record's key is too short for version and type")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise InvalidRecord(f"control record key version {version} is negative")
    if kind not in {_ABORT, _COMMIT}:
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise InvalidRecord("a transaction marker's value is too short for version and epoch")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise InvalidRecord(f"transaction marker version {version} is negative")
    return EndTransactionMarker(committed=kind == _COMMIT, coordinator_epoch=coordinator_epoch)
